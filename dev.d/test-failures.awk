# test-failures.awk - reads the log and the JUnit report of ctest, prints each failing test with its last lines.
# For a GoogleTest program that is the output between "[ RUN" and "[  FAILED"; a test that never ended (crash,
# time-out) is shown up to where it stopped; other programs with the end of their output.
# Variables: preset (shown in the titles).

function plain(text) {
  gsub(/&lt;/, "<", text)
  gsub(/&gt;/, ">", text)
  gsub(/&quot;/, "\"", text)
  gsub(/&apos;/, "'", text)
  gsub(/&amp;/, "\\&", text)
  return text
}

function show(title, from, to,    i) {
  printf "\n  FAILED %s %s\n", preset, title
  for (i = from; i <= to; i++) {
    # A sanitizer says what first, and a long stack after it; a test says it last.
    if (i == from + 12 && to - i > 18) {
      print "    | ..."
      i = to - 18
    }
    print "    | " line[i]
  }
}

function attribute(text, name) {
  if (!match(text, " " name "=\"[^\"]*\"")) return ""
  return substr(text, RSTART + length(name) + 3, RLENGTH - length(name) - 4)
}

function finish(    i, run, test, shown) {
  run = 0
  shown = 0
  for (i = 1; i <= count; i++) {
    if (line[i] ~ /^\[ RUN      \]/) {
      run = i
      test = substr(line[i], 14)
    } else if (run && line[i] ~ /^\[       OK \]|^\[  SKIPPED \]/) {
      run = 0
    } else if (run && line[i] ~ /^\[  FAILED  \]/) {
      show(test, run, i)
      shown++
      run = 0
    }
  }
  if (run) show(test " (did not end" reason[entry] "; " entry ")", run, count)
  else if (!shown) show(entry reason[entry], 1, count)
}

# The log alone says why: "3/9 Test #3: name ....***Timeout   2.02 sec", "***Exception: SegFault", "***Failed".
FNR == NR {
  if (match($0, /Test +#[0-9]+: [^ ]+ /) && index($0, "***")) {
    name = $0
    sub(/.*Test +#[0-9]+: /, "", name)
    sub(/ .*/, "", name)
    why = $0
    sub(/.*\*\*\*/, "", why)
    sub(/ +[0-9.]+ sec.*/, "", why)
    if (why != "Failed") reason[name] = ", " why
  }
  next
}

/<testcase / {
  entry = attribute($0, "name")
  failing = attribute($0, "status") == "fail" || attribute($0, "status") == "notrun"
  count = 0
}
failing && /<system-out>/ { inside = 1; sub(/.*<system-out>/, "") }
inside {
  text = $0
  ends = sub(/<\/system-out>.*/, "", text)
  line[++count] = plain(text)
  if (ends) inside = 0
}
/<\/testcase>/ && failing { finish(); failing = 0 }
