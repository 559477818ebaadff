//! The texts on the wire that must not change by accident: the tool list and the instructions, as a client sees them.

use server::ToolSet;

/// Each input line is a tool's name; what comes out is all a model sees of it.
#[test]
fn golden_wire() {
    let tools = server::tool_list(ToolSet::All);
    testkit::golden::run("../../tests/wire", |case| match case.input.as_str() {
        "names" => names(ToolSet::All),
        "names of core" => names(ToolSet::Core),
        "instructions" => {
            let shipped = shipped();
            server::instructions(shipped.iter().map(String::as_str))
        }
        name => {
            let tool = tools.as_array().into_iter().flatten().find(|tool| tool["name"] == name);
            serde_json::to_string_pretty(&tool).unwrap_or_default()
        }
    });
}

/// Without its case, neither the text of a tool nor its tokens (`cargo xtask tokens`) would be watched.
#[test]
fn every_tool_has_a_case() {
    let cases = testkit::golden::cases("../../tests/wire");
    for name in names(ToolSet::All).lines() {
        assert!(cases.iter().any(|case| case.input == name), "tests/wire/tools.case has no case for `{name}`");
    }
}

fn names(set: ToolSet) -> String {
    let tools = server::tool_list(set);
    let names: Vec<&str> = tools.as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str()).collect();
    names.join("\n")
}

/// Returns the ids of the catalogs that come with the binary, in order.
fn shipped() -> Vec<String> {
    let paths = std::fs::read_dir("../../catalogs").into_iter().flatten().flatten().map(|entry| entry.path());
    let yaml = paths.filter(|path| path.extension().is_some_and(|end| end == "yaml"));
    let mut ids: Vec<String> = yaml.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    ids.sort();
    ids
}
