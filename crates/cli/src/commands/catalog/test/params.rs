//! The values of `--param`, each for every capability or for one.
//! Invariant: a value is converted to the type of its parameter. A value that no capability accepts is an error.

use base::similar_names;
use catalog::{Capability, Catalog, Type};
use serde_json::Value;

use crate::failure::Failure;

/// All values of `--param`.
pub struct GivenParams {
    params: Vec<GivenParam>,
}

/// One value of `--param`.
struct GivenParam {
    /// The whole argument, for messages.
    argument: String,
    /// The only capability that gets the value. With `None` every capability gets it.
    capability: Option<String>,
    name: String,
    value: String,
}

impl GivenParams {
    /// Parses arguments of the form `name=value` or `capability.name=value`.
    pub fn parse(params: &[String]) -> Result<Self, Failure> {
        let parse_one = |argument: &String| {
            let (name, value) = argument
                .split_once('=')
                .filter(|(name, _)| !name.is_empty())
                .ok_or_else(|| Failure::Param { argument: argument.clone(), problem: "write NAME=VALUE".to_owned() })?;
            let (capability, name) = match name.split_once('.') {
                Some((capability, name)) => (Some(capability.to_owned()), name),
                None => (None, name),
            };
            Ok(GivenParam { argument: argument.clone(), capability, name: name.to_owned(), value: value.to_owned() })
        };
        Ok(Self { params: params.iter().map(parse_one).collect::<Result<_, Failure>>()? })
    }

    /// Refuses a value that no capability accepts, and a value that cannot be converted to the type of its parameter.
    pub fn check(&self, catalog: &Catalog, capabilities: &[&Capability]) -> Result<(), Failure> {
        for param in &self.params {
            let types: Vec<&Type> = capabilities
                .iter()
                .filter(|c| param.capability.as_ref().is_none_or(|name| *name == c.name))
                .filter_map(|c| param_type(catalog, c, &param.name))
                .collect();
            if types.is_empty() {
                let names: Vec<&str> = capabilities.iter().flat_map(|c| c.params.keys().map(String::as_str)).collect();
                let near = similar_names(&param.name, names);
                let near = if near.is_empty() { String::new() } else { format!("; one of: {}", near.join(" | ")) };
                let problem = format!("no read that is called has a parameter `{}`{near}", param.name);
                return Err(Failure::Param { argument: param.argument.clone(), problem });
            }
            for kind in types {
                parse_value(catalog, kind, &param.value)
                    .map_err(|error| Failure::Param { argument: param.argument.clone(), problem: error.0 })?;
            }
        }
        Ok(())
    }

    /// Returns the value for a parameter of a capability. A value for this capability overrides a value for every capability.
    pub fn value(&self, catalog: &Catalog, capability: &Capability, name: &str) -> Option<Value> {
        let find = |scope: Option<&str>| {
            self.params.iter().rfind(|param| param.capability.as_deref() == scope && param.name == name)
        };
        let param = find(Some(&capability.name)).or_else(|| find(None))?;
        parse_value(catalog, param_type(catalog, capability, name)?, &param.value).ok()
    }
}

/// Returns the type of a parameter. If the capability takes a part of the entity's key under this name, the type is that of this part.
pub fn param_type<'a>(catalog: &'a Catalog, capability: &'a Capability, name: &str) -> Option<&'a Type> {
    let anchor_type = || {
        let part = capability.anchor.iter().find(|part| *part == name)?;
        Some(&catalog.entity(&capability.entity)?.fields.get(part)?.kind)
    };
    capability.params.get(name).map(|p| &p.kind).or_else(anchor_type)
}

/// The reason why a text cannot be converted to a value of a type.
struct BadValue(String);

/// Converts a text to a value of a type.
fn parse_value(catalog: &Catalog, kind: &Type, text: &str) -> Result<Value, BadValue> {
    let bad = || BadValue(format!("`{text}` is not a value of type {}", kind.describe()));
    let json = || serde_json::from_str::<Value>(text).map_err(|_| BadValue(format!("`{text}` is not JSON")));
    let value = match kind {
        Type::String(_) | Type::Select(_) | Type::Date(_) | Type::Uuid => Value::from(text),
        Type::Integer => Value::from(text.parse::<i64>().map_err(|_| bad())?),
        Type::Number | Type::Boolean => json().map_err(|_| bad())?,
        Type::Array(_) | Type::MultiSelect(_) if text.starts_with('[') => json()?,
        Type::MultiSelect(_) => Value::Array(text.split(',').map(Value::from).collect()),
        Type::Array(of) => {
            Value::Array(text.split(',').map(|item| parse_value(catalog, of, item)).collect::<Result<_, _>>()?)
        }
        Type::Ref(target) => return parse_reference(catalog, target, text),
        Type::Object(_) | Type::Union(_) | Type::Json => json()?,
    };
    kind.accept(&value).map_err(|cause| BadValue(cause.to_string()))?;
    Ok(value)
}

/// Converts a text to a reference to a row. The text is the value of a key with one part, or a JSON object for a key with several parts.
fn parse_reference(catalog: &Catalog, target: &str, text: &str) -> Result<Value, BadValue> {
    let Some(entity) = catalog.entity(target) else { return Ok(Value::from(text)) };
    let key: Vec<&catalog::Field> = entity.key_fields().collect();
    if let [only] = key.as_slice() {
        return parse_value(catalog, &only.kind, text);
    }
    let sample: Vec<String> = key.iter().map(|f| format!("\"{}\": …", f.name)).collect();
    let expected = || BadValue(format!("a {target} is written {{{}}}", sample.join(", ")));
    let value: Value = serde_json::from_str(text).map_err(|_| expected())?;
    let complete = value.as_object().is_some_and(|o| key.iter().all(|f| o.get(&f.name).is_some_and(|v| !v.is_null())));
    if complete { Ok(value) } else { Err(expected()) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::shipped;
    use serde_json::json;

    /// Returns the message with which these arguments are refused, or an empty text if they are accepted.
    fn refusal(params: &[&str]) -> String {
        let demo = shipped::demo_catalog().unwrap();
        let reads: Vec<&Capability> = demo.capabilities.values().filter(|c| c.kind.is_read()).collect();
        let params: Vec<String> = params.iter().map(|p| (*p).to_owned()).collect();
        match GivenParams::parse(&params).and_then(|given| given.check(&demo, &reads)) {
            Ok(()) => String::new(),
            Err(failure) => failure.to_string(),
        }
    }

    #[test]
    fn values_get_the_type_of_their_parameter() {
        let demo = shipped::demo_catalog().unwrap();
        let params = ["number=7", "ticket_list.state=open", "state=done", r#"ticket={"project":"OPS","number":1}"#];
        let given = GivenParams::parse(&params.map(str::to_owned)).unwrap();
        let value = |capability, name| given.value(&demo, demo.capability(capability).unwrap(), name);
        assert_eq!(value("ticket_get", "number"), Some(json!(7)));
        assert_eq!(value("ticket_list", "state"), Some(json!("open")), "the value for the capability comes first");
        assert_eq!(value("comment_list", "ticket"), Some(json!({"project": "OPS", "number": 1})));
        assert_eq!(value("project_list", "state"), None);
    }

    #[test]
    fn a_value_that_fits_no_parameter_is_refused_with_a_suggestion() {
        assert_eq!(refusal(&["number=7", "project=OPS", "team=platform"]), "");
        assert_eq!(refusal(&["number"]), "--param number: write NAME=VALUE");
        assert_eq!(refusal(&["=7"]), "--param =7: write NAME=VALUE");
        assert_eq!(refusal(&["number=x"]), "--param number=x: `x` is not a value of type int");
        assert!(refusal(&["state=opne"]).contains("`opne` is not one of open | doing | done"));
        assert!(refusal(&["stat=open"]).contains("no read that is called has a parameter `stat`; one of: state"));
        assert!(refusal(&["person_get.number=1"]).contains("has a parameter `number`"));
        assert!(refusal(&["ticket=7"]).contains(r#"a Ticket is written {"project": …, "number": …}"#));
    }
}
