# The tutorials' commands, as they stand there and in their order.
load helpers

# follow PAGE: runs each line of its command blocks.
follow() {
    local line n=0
    hwnas() { "$HWNAS" "$@"; }
    while read -r line; do
        echo "\$ $line"
        eval "$line" </dev/null || { echo "exit code $?"; return 1; }
        n=$((n + 1))
    done < <(sed -n 's/^    //p' "$HWNAS_SRC/docs/$1.md")
    [ $n -ge 5 ]
}

@test "tutorial: a search, its report, the winner as a file" {
    follow tutorial-search
    [ -s first.html ]
    [ -s best.onnx ]
    [ -s best.py ]
    [ "$("$HWNAS" study trials first.db --csv | wc -l)" = 41 ]
}

@test "tutorial: a profile, its roofline, a comparison" {
    follow tutorial-profile
    [ -s here.html ]
    [ -s roofline.svg ]
    [ -s choice.html ]
}

@test "each page of docs/ is in one of the four parts of docs/README.md" {
    local page
    for page in "$HWNAS_SRC"/docs/*.md; do
        page=${page##*/}
        [ "$page" = README.md ] || grep -q "^| \[$page\]($page) |" "$HWNAS_SRC/docs/README.md" || { echo "$page"; return 1; }
    done
}
