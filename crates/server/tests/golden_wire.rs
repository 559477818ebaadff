//! What goes over the wire and must not change by accident: the tool list, as a client sees it.

/// Each input line is a tool's name; what comes out is all a model sees of it.
#[test]
fn golden_wire() {
    let tools = server::tool_list(server::ToolSet::All);
    let all: Vec<&str> = tools.as_array().into_iter().flatten().filter_map(|t| t["name"].as_str()).collect();
    testkit::golden::run("../../tests/wire", |case| match case.input.as_str() {
        "names" => all.join("\n"),
        name => {
            let tool = tools.as_array().into_iter().flatten().find(|tool| tool["name"] == name);
            serde_json::to_string_pretty(&tool).unwrap_or_default()
        }
    });
}
