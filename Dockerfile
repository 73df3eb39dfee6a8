# Base images are pinned by digest, so that builds are reproducible; update them with each Debian point release.
# The build runs the same script as `./x build`; the image contains the program and its libraries. To record the commit:
# `docker build --build-arg COMMIT=$(git rev-parse HEAD) --build-arg SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) .`
FROM debian:12@sha256:9344f8b8992482f80cba753f323adeaf17690076c095ccff6cc9536be98185dc AS build
ARG COMMIT=unknown SOURCE_DATE_EPOCH=0
WORKDIR /src
COPY . .
RUN ./x build && strip -o /symloom build/symloom && objcopy --only-keep-debug build/symloom /symloom.debug
RUN printf '{"source":"symloom","version":"%s","commit":"%s","build":"%s"}\n' "$(build/symloom version | cut -d' ' -f2)" \
        "$COMMIT" "$SOURCE_DATE_EPOCH" >/version.json

FROM scratch AS symloom-debug
COPY --from=build /symloom.debug /

FROM debian:12-slim@sha256:88200866dfff7ea7f5cbcb6ec7c8a701889efe6fe859fe64d6990e4b07ea4171
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates libuv1 libcurl4 libyaml-0-2 \
        libssl3 libbrotli1 libzstd1 zlib1g liblzma5 libxxhash0 libexpat1 libpcre2-8-0 libprotobuf-c1 libzydis4.0 libhiredis0.14 libseccomp2 \
    && rm -rf /var/lib/apt/lists/* && mkdir -p /data /etc/symloom && chown 65532:65532 /data \
    && ln -s symloom /usr/bin/symbolicator # whose name deployments call by its path: /bin/symbolicator
COPY --from=build /symloom /version.json /usr/bin/
COPY doc/container.yml /etc/symloom/config.yml
USER 65532:65532
WORKDIR /
VOLUME /data
EXPOSE 3021 3022
ENV SYMLOOM_CONTAINER=1 GLIBC_TUNABLES=glibc.malloc.hugetlb=1
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s CMD ["/usr/bin/symloom", "healthcheck"]
ENTRYPOINT ["/usr/bin/symloom"]
CMD ["run", "-c", "/etc/symloom/config.yml"]
