# What tests need of Debian's Python.

# has_module NAME: Debian's Python has this module. It is not loaded, which takes PyTorch more than a second.
has_module() {
    /usr/bin/python3 -c 'import importlib.util, sys
sys.exit(importlib.util.find_spec(sys.argv[1]) is None)' "$1" 2>/dev/null
}

# need MODULE...: skips the test where Debian's Python lacks one of them.
need() {
    local module
    for module; do
        has_module "$module" || skip "needs Debian's python3-${module,,}"
    done
}
