# Prints C with sections of Markdown pages as lists of blocks:
#
#   awk -v docs=FOLDER -f topics.awk topics.txt
#
# Takes of Markdown what the pages have: paragraphs, indented and fenced code, lists, and tables, of which a row becomes an
# item. Emphasis and links are dropped, `code` stays.
function trim(text) {
    gsub(/^[ \t]+|[ \t]+$/, "", text)
    return text
}
function quoted(text) {
    gsub(/\\/, "&&", text)
    gsub(/"/, "\\\"", text)
    gsub(/\?/, "\\?", text) # no trigraphs
    return "\"" text "\""
}
function plain(text) { # links as their words, or as the page that they lead to
    while (match(text, /\[[^]]*\]\([^)]*\)/)) {
        link = substr(text, RSTART, RLENGTH)
        words = target = link
        sub(/^\[/, "", words)
        sub(/\]\(.*/, "", words)
        sub(/.*\]\(/, "", target)
        sub(/[#)].*/, "", target)
        if (words == target)
            words = "docs/" target
        text = substr(text, 1, RSTART - 1) words substr(text, RSTART + RLENGTH)
    }
    gsub(/\*\*/, "", text)
    while (match(text, /(^| )\*[^*` ][^*`]*\*/)) {
        words = substr(text, RSTART, RLENGTH)
        gsub(/\*/, "", words)
        text = substr(text, 1, RSTART - 1) words substr(text, RSTART + RLENGTH)
    }
    return text
}
function block(kind, term, text) {
    printf "    {HWNAS_BLOCK_%s, %s, %s},\n", kind, term == "" ? "NULL" : quoted(plain(term)), \
        quoted(kind == "CODE" ? text : plain(text))
}
function end_paragraph() {
    if (paragraph != "")
        block("PARAGRAPH", "", paragraph)
    paragraph = ""
}
# What the row says comes first, then cells that begin with the words of their column: "default none".
function end_row(line, n, i, named, cells, text) {
    gsub(/\\\|/, "\001", line)
    n = split(line, cells, "|")
    if (!in_table) { # what the columns are
        for (i = 3; i < n; i++) {
            headings[i] = trim(cells[i])
            if (headings[i] ~ /^(what|meaning)/)
                headings[i] = ""
        }
        in_table = 1
        return
    }
    if (trim(cells[2]) ~ /^-+$/)
        return
    for (named = 0; named <= 1; named++)
        for (i = 3; i < n; i++)
            if (trim(cells[i]) !~ /^-?$/ && (headings[i] != "") == named)
                text = text (text == "" ? "" : "; ") (named ? headings[i] " " : "") trim(cells[i])
    gsub(/\001/, "|", text)
    block("ITEM", trim(cells[2]), text)
}
function section(page, heading, line, is_in, in_code, n) {
    is_in = heading == "-"
    in_table = n = 0
    while ((getline line <page) > 0) {
        if (line ~ /^```/) {
            end_paragraph()
            in_code = !in_code
        } else if (!in_code && line ~ /^##? /) {
            end_paragraph()
            if (is_in && line ~ /^## /)
                is_in = 0
            if (line == "## " heading)
                is_in = 1
        } else if (!is_in)
            continue
        else if (in_code || (line ~ /^    / && paragraph == ""))
            block("CODE", "", substr(line, in_code ? 1 : 5))
        else if (line ~ /^### /) {
            end_paragraph()
            block("HEADING", "", substr(line, 5))
        } else if (line ~ /^\|/)
            end_row(line)
        else if (line ~ /^$/)
            end_paragraph()
        else if (line ~ /^- /) {
            end_paragraph()
            paragraph = line
        } else
            paragraph = paragraph (paragraph == "" ? "" : " ") trim(line)
        if (is_in && line !~ /^\|/)
            in_table = 0
        n += is_in
    }
    end_paragraph()
    close(page)
    if (!n) {
        print page ": no section '" heading "'" >"/dev/stderr"
        failed = 1
        exit 1
    }
}
BEGIN {
    FS = " *\\| *"
    print "#include \"cli/topics.h\"\n\n#include <stddef.h>\n"
}
/^#/ { next }
{
    names[++n_topics] = $1
    lines[n_topics] = $2
    printf "static const hwnas_topic_block blocks_%d[] = {\n", n_topics
    n_headings = split($4, wanted, ", *")
    for (h = 1; h <= n_headings; h++) {
        if (n_headings > 1)
            block("HEADING", "", wanted[h])
        section(docs "/" $3, wanted[h])
    }
    print "    {0}};\n"
}
END {
    if (failed)
        exit 1
    print "const hwnas_topic hwnas_topics[] = {"
    for (i = 1; i <= n_topics; i++)
        printf "    {%s, %s, blocks_%d},\n", quoted(names[i]), quoted(lines[i]), i
    print "    {0}};"
}
