//! The fixtures that are only data, from the files beside this one.
//! Invariant: the answers are the content of the files. A file that does not fit its type answers nothing, which fails the suite.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use rmcp::model::{
    CallToolResult, GetPromptResult, JsonObject, Prompt, PromptMessage, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate, Tool,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| parse(include_str!("tools.json")));
static ANSWERS: LazyLock<BTreeMap<String, CallToolResult>> = LazyLock::new(|| parse(include_str!("answers.json")));
static PROMPTS: LazyLock<Prompts> = LazyLock::new(|| parse(include_str!("prompts.json")));
static RESOURCES: LazyLock<Resources> = LazyLock::new(|| parse(include_str!("resources.json")));

#[derive(Default, Deserialize)]
struct Prompts {
    list: Vec<Prompt>,
    /// Messages by prompt. `{argument}` stands for an argument.
    messages: BTreeMap<String, Value>,
}

#[derive(Default, Deserialize)]
struct Resources {
    list: Vec<Resource>,
    templates: Vec<ResourceTemplate>,
    contents: BTreeMap<String, ResourceContents>,
}

pub fn tools() -> Vec<Tool> {
    TOOLS.clone()
}

/// Of a tool that always answers the same.
pub fn answer(tool: &str) -> Option<CallToolResult> {
    ANSWERS.get(tool).cloned()
}

pub fn prompts() -> Vec<Prompt> {
    PROMPTS.list.clone()
}

pub fn prompt(name: &str, given: &JsonObject) -> Option<GetPromptResult> {
    let mut messages = PROMPTS.messages.get(name)?.clone();
    fill(&mut messages, given);
    let messages: Vec<PromptMessage> = serde_json::from_value(messages).ok()?;
    Some(GetPromptResult::new(messages))
}

pub fn resources() -> Vec<Resource> {
    RESOURCES.list.clone()
}

pub fn resource_templates() -> Vec<ResourceTemplate> {
    RESOURCES.templates.clone()
}

pub fn read(uri: &str) -> Option<ReadResourceResult> {
    let contents = match uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data")) {
        Some(id) => {
            let record = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            ResourceContents::text(record.to_string(), uri).with_mime_type("application/json")
        }
        None => RESOURCES.contents.get(uri)?.clone(),
    };
    Some(ReadResourceResult::new(vec![contents]))
}

fn fill(value: &mut Value, given: &JsonObject) {
    match value {
        Value::String(text) => {
            for (name, argument) in given {
                *text = text.replace(&format!("{{{name}}}"), argument.as_str().unwrap_or_default());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, given)),
        Value::Object(map) => map.values_mut().for_each(|item| fill(item, given)),
        _ => {}
    }
}

pub fn parse<T: DeserializeOwned + Default>(text: &str) -> T {
    serde_json::from_str(text).unwrap_or_else(|error| {
        tracing::error!(%error, "a file of fixtures does not fit");
        T::default()
    })
}
