#!/usr/bin/python3
"""Writes win32_names.inc and ntstatus_names.inc, the names of Windows' error numbers, from headers in Debian packages and in
Microsoft's SDK (repository github.com/microsoft/win32metadata).

    windows_names.py [ROOT]     ROOT: folder where the packages were unpacked, if they are not installed

Reads libwine-dev, librust-winapi-dev, mingw-w64-common and rust-src, if present, in this order. The first that has a number gives
its name, and the first that has a name gives its number, because later ones contain some of previews of Windows. The checked-in
tables need all four (Wine 10, mingw-w64 14, Rust 1.85) and, for recent names, the repository below the same root (headers of SDK
10.0.26100)."""
import os
import re
import sys

FOLDERS = ['usr/include/wine/wine/windows', 'usr/share/cargo/registry/winapi-0.3.9/src/shared', 'usr/share/mingw-w64/include',
           'usr/lib/rustlib/src/rust/library/std/src/sys/pal/windows/c', 'generation/WinSDK/RecompiledIdlHeaders/shared']
DEFINITION = re.compile(r'^\s*(?:#\s*define\s+(\w+)\s+(.*)|pub const (\w+)\s*:\s*\w+\s*=\s*(.*?);)')
WIN32 = re.compile(r'(?:ERROR_|RPC_[ESX]_)\w+')
DECIMAL = re.compile(r'(?:__MSABI_LONG\()?(\d+)(?:[Ll]|u32|i32)?\)?')
STATUS = re.compile(r'\(?\(?\(?(?:\(?\s*(?:NTSTATUS|DWORD|LONG)\s*\)?)?\s*\(?(0x[0-9A-Fa-f]{8})[Ll]?\)*(?: as i32| as u32)?')


def definitions(root, stem):
    for folder in FOLDERS:
        for name in (stem + '.rs', stem + '.h', 'windows_sys.rs'):
            path = os.path.join(root, folder, name)
            if os.path.exists(path):
                for line in open(path, encoding='utf-8', errors='replace'):
                    found = DEFINITION.match(line)
                    if found:
                        value = found.group(2) or found.group(4) or ''
                        yield found.group(1) or found.group(3), re.split(r'\s*/[/*]', value)[0].strip()


def win32(name, value):
    """The number of the error; None when it is none."""
    number = DECIMAL.fullmatch(value)
    return int(number.group(1)) if WIN32.fullmatch(name) and number and int(number.group(1)) < 1 << 32 else None


def status(name, value):
    number = STATUS.fullmatch(value)
    is_status = (number and number.group(1)[2].lower() in '048c' and not name.endswith('_ERROR_CODE')
                 and not name.startswith('STATUS_SEVERITY_'))
    return int(number.group(1), 16) if is_status else None


def table(root, stem, number_of):
    names, numbers = {}, {}
    for name, value in definitions(root, stem):
        number = number_of(name, value)
        if number is not None and numbers.setdefault(name, number) == number:
            names.setdefault(number, name)
    return names


def write(path, names, form):
    with open(path, 'w', encoding='ascii') as out:
        out.write('/* Made by windows_names.py. In ascending order. */\n')
        for number in sorted(names):
            out.write('{%s, "%s"},\n' % (form % number, names[number]))
    print('%s: %d names' % (os.path.basename(path), len(names)))


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else '/'
    here = os.path.dirname(os.path.abspath(__file__))
    write(os.path.join(here, 'win32_names.inc'), table(root, 'winerror', win32), '%d')
    write(os.path.join(here, 'ntstatus_names.inc'), table(root, 'ntstatus', status), '0x%08x')


main()
