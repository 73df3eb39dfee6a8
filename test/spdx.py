"""What an SPDX 2.3 document has to be, as far as its specification says so in rules that a program can look at."""
import re

ID = r"SPDXRef-[A-Za-z0-9.-]+"
ORIGIN = r"(?:Organization|Person): .+"
RELATIONS = ("DESCRIBES", "STATIC_LINK", "DYNAMIC_LINK")
DOCUMENT = {"spdxVersion": r"SPDX-2\.3", "dataLicense": r"CC0-1\.0", "SPDXID": "SPDXRef-DOCUMENT", "name": ".+",
            "documentNamespace": r"https?://[^#\s]+"}
PACKAGE = {"name": ".+", "SPDXID": ID, "versionInfo": ".+", "downloadLocation": r"NOASSERTION|NONE|\w+://\S+", "supplier": ORIGIN,
           "licenseConcluded": ".+", "licenseDeclared": ".+", "copyrightText": ".+"}


def lacking(where, thing, rules):
    return [f"{where}: {key} is {thing.get(key)!r}" for key, rule in rules.items() if not re.fullmatch(rule, str(thing.get(key, "")))]


def licence_problems(where, text, extracted, known=None):
    """`known`: the ids of SPDX's list, or None to look at the grammar alone."""
    if text in ("NOASSERTION", "NONE"):
        return
    words = text.split(" ")
    for word, operator in zip(words[0::2], [None, *words[1::2]]):
        if operator not in (None, "AND", "OR", "WITH"):
            yield f"{where}: {operator} is no operator in {text!r}"
        if word.startswith("LicenseRef-"):
            if word not in extracted:
                yield f"{where}: there is no text of {word}"
        elif not re.fullmatch(r"[A-Za-z0-9.-]+\+?", word) or (known and operator != "WITH" and word not in known):
            yield f"{where}: {word} is no licence of SPDX's list"
    if len(words) % 2 == 0:
        yield f"{where}: {text!r} ends with an operator"


def problems(document, known_licences=None):
    wrong = lacking("document", document, DOCUMENT)
    creation = document.get("creationInfo", {})
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", creation.get("created", "")):
        wrong.append("creationInfo: no time")
    if not any(re.fullmatch(r"Tool: .+-[\d.]+", creator) for creator in creation.get("creators", [])):
        wrong.append("creationInfo: no creator")
    extracted = {e["licenseId"] for e in document.get("hasExtractedLicensingInfos", []) if e["extractedText"].strip()}
    ids = {"SPDXRef-DOCUMENT"}
    for package in document.get("packages", []):
        where = f"package {package.get('name')}"
        wrong += lacking(where, package, PACKAGE)
        if package.get("SPDXID") in ids:
            wrong.append(f"{where}: {package['SPDXID']} is there twice")
        ids.add(package.get("SPDXID"))
        if package.get("filesAnalyzed") is not False:
            wrong.append(f"{where}: it names no files, and does not say so")
        for key in ("licenseConcluded", "licenseDeclared"):
            wrong += licence_problems(f"{where}: {key}", package.get(key, ""), extracted, known_licences)
        for ref in package.get("externalRefs", []):
            wrong += lacking(where, ref, {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                          "referenceLocator": r"pkg:deb/debian/[a-z0-9.+-]+@[A-Za-z0-9.~%-]+\?arch=\w+"})
    for relation in document.get("relationships", []):
        ends = relation.get("spdxElementId"), relation.get("relatedSpdxElement")
        if relation.get("relationshipType") not in RELATIONS or not ids.issuperset(ends):
            wrong.append(f"relationship {ends}: {relation.get('relationshipType')}")
    related = {relation.get("relatedSpdxElement") for relation in document.get("relationships", [])}
    wrong += [f"{id} is related to nothing" for id in sorted(ids - related - {"SPDXRef-DOCUMENT"}, key=str)]
    return wrong
