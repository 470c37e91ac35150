#include <algorithm>
#include <cstdio>
#include <ostream>
#include <set>

#include "placement_limit.h"
#include "report/output.h"

namespace hvd::bench {
namespace {

std::string format(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), pattern, value);
  return text;
}

// Three digits that mean something: 0.0812, 4.73, 152, 38400.
std::string figure(double value) {
  if (value < 1) return format("%.3f", value);
  if (value < 100) return format("%.3g", value);
  return format("%.0f", value);
}

std::string verdict_text(const Row& row, const std::string& versus) {
  for (const Verdict& v : row.verdicts) {
    if (v.versus != versus) continue;
    std::string text = v.bound == Verdict::Bound::kAtLeast ? " >=" : " <=";
    text += format("%.3g", v.figure);
    text += !v.got ? " no near round" : v.reached() ? " ok" : " MISS";
    return text;
  }
  return "";
}

// "0.41 x5.12 [2.71] >=4 ok"
std::string rival_text(const Row& row, const std::string& name, const Rival& rival) {
  std::string text = figure(rival.value);
  text += rival.ratio.near ? format(" x%.3g", *rival.ratio.near) : " x-";
  if (rival.ratio.far) text += format(" [%.3g]", *rival.ratio.far);
  return text + verdict_text(row, name);
}

using Line = std::vector<std::string>;

Line line_of(const Row& row, const std::vector<std::string>& rivals) {
  Line line = {row.title(), figure(row.value) + " " + row.unit + verdict_text(row, "value")};
  std::string limit = "-";
  if (row.limit) {
    limit = figure(row.limit->value);
    limit += row.limit->ratio.near ? format(" %.2f", *row.limit->ratio.near) : " -";
    if (row.limit->ratio.far) limit += format(" [%.2f]", *row.limit->ratio.far);
    limit += verdict_text(row, "limit");
  }
  line.push_back(limit);
  for (const std::string& name : rivals) {
    const auto peer = row.peers.find(name);
    const auto sibling = row.siblings.find(name);
    if (peer != row.peers.end()) {
      line.push_back(rival_text(row, name, peer->second));
    } else if (sibling != row.siblings.end()) {
      line.push_back(rival_text(row, name, sibling->second));
    } else {
      line.push_back("-");
    }
  }
  line.push_back(std::to_string(row.near_rounds) + "+" + std::to_string(row.far_rounds));
  return line;
}

void print_aligned(std::ostream& out, const std::vector<Line>& lines) {
  std::vector<size_t> widths(lines.front().size(), 0);
  for (const Line& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  for (const Line& line : lines) {
    std::string text;
    for (size_t i = 0; i < line.size(); ++i) {
      text += line[i] + std::string(widths[i] - line[i].size() + 2, ' ');
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out << text << '\n';
  }
}

}  // namespace

void print_table(std::ostream& out, const std::string& bench, const Machine& machine,
                 const std::vector<Row>& rows) {
  std::set<std::string> names;
  int reached = 0;
  int missed = 0;
  int open = 0;
  for (const Row& row : rows) {
    for (const auto& [name, rival] : row.peers) names.insert(name);
    for (const auto& [name, rival] : row.siblings) names.insert(name);
    for (const Verdict& v : row.verdicts) ++(!v.got ? open : v.reached() ? reached : missed);
  }
  const std::vector<std::string> rivals(names.begin(), names.end());

  out << bench << ": " << machine.cpu << ", " << machine.cores << " cores, Linux " << machine.kernel
      << "\nx = how many times quicker we are, median over the near rounds (round trip < "
      << kNearLimitNs << " ns) [far rounds]\n\n";
  std::vector<Line> lines = {{"case", "ours", "limit, share"}};
  lines.front().insert(lines.front().end(), rivals.begin(), rivals.end());
  lines.front().push_back("near+far");
  for (const Row& row : rows) lines.push_back(line_of(row, rivals));
  print_aligned(out, lines);
  out << "\ngoals: " << reached << " reached, " << missed << " missed, " << open
      << " not judged (no near round)\n";
}

}  // namespace hvd::bench
