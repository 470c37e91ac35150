#include "launch/options/config_file.h"

#include <algorithm>

#include "base/near_word.h"
#include "base/parse.h"
#include "base/text.h"
#include "launch/options/yaml.h"
#include "launch/options/yaml_numbers.h"

namespace hvd::launch {
namespace {

// What the sample file of the original holds but never meant anything.
bool is_known_to_be_ignored(std::string_view section, std::string_view key) {
  return section == "logging" && key == "hide_timestamp";
}

const TunableInfo* find_tunable(std::string_view section, std::string_view key) {
  for (const TunableInfo& info : tunable_table()) {
    if (info.config.section == section && info.config.key == key) return &info;
  }
  return nullptr;
}

bool is_section(std::string_view name) {
  return std::any_of(tunable_table().begin(), tunable_table().end(),
                     [name](const TunableInfo& info) { return info.config.section == name; });
}

bool is_number(TunableKind kind) {
  return kind == TunableKind::kInteger || kind == TunableKind::kMebibytes ||
         kind == TunableKind::kDecimal;
}

class ConfigReader {
 public:
  ConfigReader(std::string_view path, Options& options) : path_(path), options_(options) {}

  Status read(const YamlNode& root) {
    if (root.kind != YamlNode::Kind::kMap) return error(root, "expected sections, got a list");
    for (const auto& [name, node] : root.entries) {
      if (name == "controller") {
        HVD_TRY(read_controller(node));
      } else if (is_section(name)) {
        HVD_TRY(read_section(name, node));
      } else {
        warn_unknown(name, node, sections());
      }
    }
    return Status::ok();
  }

 private:
  std::string place(const YamlNode& node) const { return concat(path_, ": line ", node.line); }
  Status error(const YamlNode& node, std::string_view what) const {
    return invalid_argument(concat(place(node), ": ", what));
  }

  static std::vector<std::string_view> sections() {
    std::vector<std::string_view> names = {"controller"};
    for (const TunableInfo& info : tunable_table()) names.push_back(info.config.section);
    return names;
  }

  void warn_unknown(std::string_view name, const YamlNode& node,
                    const std::vector<std::string_view>& known) {
    options_.warnings.push_back(
        concat(place(node), ": nobody reads '", name, "'", near_word_text(name, known)));
  }

  Status read_controller(const YamlNode& node) {
    if (node.kind == YamlNode::Kind::kNull) return Status::ok();
    static constexpr std::array<std::string_view, 2> kChoices = {"gloo", "mpi"};
    const auto choice = parse_choice(node.scalar, kChoices);
    if (!choice) return blame(concat(place(node), ": controller"), choice.status());
    if (options_.controller == Controller::kUnspecified) {
      options_.controller = *choice == 0 ? Controller::kGloo : Controller::kMpi;
    }
    return Status::ok();
  }

  Status read_section(std::string_view section, const YamlNode& node) {
    if (node.kind == YamlNode::Kind::kNull) return Status::ok();
    if (node.kind != YamlNode::Kind::kMap) {
      return error(node, concat("expected keys of section '", section, "' below it"));
    }
    for (const auto& [key, value] : node.entries) {
      const TunableInfo* info = find_tunable(section, key);
      if (info != nullptr) {
        HVD_TRY(read_tunable(*info, value));
      } else if (!is_known_to_be_ignored(section, key)) {
        std::vector<std::string_view> known;
        for (const TunableInfo& row : tunable_table()) {
          if (row.config.section == section) known.push_back(row.config.key);
        }
        warn_unknown(key, value, known);
      }
    }
    if (!node.entries.empty()) read_missing(section, node);
    return Status::ok();
  }

  // A section says something by being there.
  void read_missing(std::string_view section, const YamlNode& node) {
    for (const TunableInfo& info : tunable_table()) {
      const ConfigKey& config = info.config;
      if (config.section != section || !config.if_missing || options_.tunables.get(info.id))
        continue;
      if (node.find(config.key) == nullptr) {
        options_.tunables.set_switch(info.id, *config.if_missing != config.inverted);
      }
    }
  }

  Status read_tunable(const TunableInfo& info, const YamlNode& node) {
    if (node.kind == YamlNode::Kind::kNull || options_.tunables.get(info.id)) return Status::ok();
    const std::string who = concat(place(node), ": ", info.config.section, ".", info.config.key);
    if (node.kind != YamlNode::Kind::kScalar) {
      return invalid_argument(concat(who, ": expected one value"));
    }
    if (info.kind == TunableKind::kSwitch) {
      const auto on = parse_switch(node.scalar);
      if (!on) return blame(who, on.status());
      options_.tunables.set_switch(info.id, *on != info.config.inverted);
      return Status::ok();
    }
    const bool is_yaml_number = is_number(info.kind) && !node.is_quoted;
    const auto text = is_yaml_number ? yaml_number(node.scalar) : node.scalar;
    const Status set = text ? options_.tunables.set(info.id, *text) : text.status();
    return set.is_ok() ? set : blame(who, set);
  }

  std::string_view path_;
  Options& options_;
};

}  // namespace

Status apply_config(std::string_view path, std::string_view text, Options& options) {
  const auto root = parse_yaml(text);
  if (!root) return blame(path, root.status());
  return ConfigReader(path, options).read(*root);
}

}  // namespace hvd::launch
