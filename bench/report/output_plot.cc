#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>

#include "report/output.h"

namespace hvd::bench {
namespace {

struct Point {
  double x = 0;
  double y = 0;
};
using Curve = std::vector<Point>;

// Cases that belong into one picture: the title without its size, "np=2" or "np=2 allgather"; as
// bars those without a size, all of them or those with the same words before a colon.
struct Family {
  std::string name;
  std::string unit;
  bool has_sizes = false;
  std::vector<std::pair<std::string, Curve>> curves;

  Curve& curve(const std::string& label) {
    for (auto& [existing, points] : curves) {
      if (existing == label) return points;
    }
    return curves.emplace_back(label, Curve{}).second;
  }
};

std::string family_name(const Row& row) {
  if (row.bytes > 0) return row.case_name.substr(0, row.case_name.find(" bytes="));
  const size_t colon = row.case_name.find(": ");
  return colon == std::string::npos ? "" : row.case_name.substr(0, colon);
}

// The rest of the case's name, to tell the bars of one picture apart.
std::string bar_prefix(const Row& row, const std::string& family) {
  return family.empty() ? row.case_name + " " : row.case_name.substr(family.size() + 2) + " ";
}

void add_point(Curve& curve, double x, double y) {
  // Rows of one case repeat its peers; the first value is enough.
  for (const Point& point : curve) {
    if (point.x == x) return;
  }
  if (std::isfinite(y)) curve.push_back({x, y});
}

std::vector<Family> families_of(const std::vector<Row>& rows) {
  std::vector<Family> families;
  for (const Row& row : rows) {
    if (row.metric != "mean" && row.metric != "share") continue;
    const std::string name = family_name(row);
    if (families.empty() || families.back().name != name) {
      families.push_back(
          {.name = name, .unit = row.unit, .has_sizes = row.bytes > 0, .curves = {}});
    }
    Family& family = families.back();
    const double x = static_cast<double>(row.bytes);
    const std::string prefix = family.has_sizes ? "" : bar_prefix(row, name);
    add_point(family.curve(prefix + row.ours), x, row.value);
    for (const auto& [peer, rival] : row.peers) {
      add_point(family.curve(prefix + peer), x, rival.value);
    }
    if (row.limit) add_point(family.curve(prefix + "limit"), x, row.limit->value);
  }
  return families;
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

std::string data_block(const Family& family) {
  std::string text;
  for (size_t i = 0; i < family.curves.size(); ++i) {
    text += "$d" + std::to_string(i) + " << EOD\n";
    for (const Point& p : family.curves[i].second) {
      const double x = family.has_sizes ? p.x : static_cast<double>(i);
      text += std::to_string(x) + " " + std::to_string(p.y) + "\n";
    }
    text += "EOD\n";
  }
  return text;
}

std::string script_of(const Family& family, const std::string& bench, const std::string& png) {
  std::string text = "set terminal pngcairo size 1000,700 noenhanced font 'sans,11'\n";
  text += "set output " + quoted(png) + "\n" + data_block(family);
  text += "set title " + quoted(bench + " " + family.name) + "\nset ylabel " + quoted(family.unit) +
          "\n";
  text += "set grid y\n";
  if (family.has_sizes) {
    text += "set key left top\nset logscale x 2\nset logscale y 10\nset xlabel 'bytes'\n";
    text += "set format x '%.0b%B'\n";
  } else {
    text += "unset key\nset yrange [0:*]\nset style fill solid 0.6\nset boxwidth 0.7\n";
    text += "set xrange [-0.6:" + std::to_string(family.curves.size()) + "-0.4]\nset xtics (";
    for (size_t i = 0; i < family.curves.size(); ++i) {
      text += (i == 0 ? "" : ", ") + quoted(family.curves[i].first) + " " + std::to_string(i);
    }
    // Long names at the left and below need room that gnuplot does not give them by itself.
    text += ") rotate by 40 right\nset lmargin 24\nset rmargin 2\nset bmargin 13\n";
  }
  text += "plot ";
  for (size_t i = 0; i < family.curves.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::string("$d") + std::to_string(i) + " using 1:2 with " +
            (family.has_sizes ? "linespoints lw 2" : "boxes") + " title " +
            quoted(family.curves[i].first);
  }
  return text + "\n";
}

bool run_gnuplot(const std::string& script) {
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen("gnuplot", "w"), pclose);
  if (pipe == nullptr) return false;
  std::fwrite(script.data(), 1, script.size(), pipe.get());
  return pclose(pipe.release()) == 0;
}

// "np=2 allgather" -> "-np2-allgather"
std::string suffix_of(const std::string& family) {
  std::string suffix = "-";
  for (const char c : family) {
    if (c == ' ')
      suffix += '-';
    else if (c != '=')
      suffix += c;
  }
  return suffix;
}

}  // namespace

std::vector<std::string> draw(const std::string& stem, const std::string& bench,
                              const std::vector<Row>& rows) {
  std::vector<std::string> files;
  const std::vector<Family> families = families_of(rows);
  for (const Family& family : families) {
    const std::string png = stem + (families.size() == 1 ? "" : suffix_of(family.name)) + ".png";
    if (run_gnuplot(script_of(family, bench, png))) files.push_back(png);
  }
  return files;
}

}  // namespace hvd::bench
