//! The values of `--param`: for every capability, or for one.
//! Invariant: a value reaches a call only as the type that its parameter has; one that no capability takes is a mistake.

use base::similar_names;
use catalog::{Capability, Catalog, Type};
use serde_json::Value;

use crate::failure::Failure;

pub struct Given {
    params: Vec<Pair>,
}

struct Pair {
    given: String,
    /// Of one capability, where it is named.
    capability: Option<String>,
    name: String,
    value: String,
}

impl Given {
    /// `name=value`, or `capability.name=value`.
    pub fn parse(params: &[String]) -> Result<Self, Failure> {
        let wrong = |given: &String| Failure::Param { given: given.clone(), why: "write NAME=VALUE".to_owned() };
        let pair = |given: &String| {
            let (name, value) =
                given.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(|| wrong(given))?;
            let (capability, name) = match name.split_once('.') {
                Some((capability, name)) => (Some(capability.to_owned()), name),
                None => (None, name),
            };
            Ok(Pair { given: given.clone(), capability, name: name.to_owned(), value: value.to_owned() })
        };
        Ok(Self { params: params.iter().map(pair).collect::<Result<_, Failure>>()? })
    }

    /// Refuses what no capability takes, and what is not of its parameter's type.
    pub fn check(&self, catalog: &Catalog, capabilities: &[&Capability]) -> Result<(), Failure> {
        for pair in &self.params {
            let takers: Vec<&Type> = capabilities
                .iter()
                .filter(|c| pair.capability.as_ref().is_none_or(|name| *name == c.name))
                .filter_map(|c| type_of(catalog, c, &pair.name))
                .collect();
            if takers.is_empty() {
                let names: Vec<&str> = capabilities.iter().flat_map(|c| c.params.keys().map(String::as_str)).collect();
                let near = similar_names(&pair.name, names);
                let near = if near.is_empty() { String::new() } else { format!("; one of: {}", near.join(" | ")) };
                let why = format!("no read that is called has a parameter `{}`{near}", pair.name);
                return Err(Failure::Param { given: pair.given.clone(), why });
            }
            for kind in takers {
                typed(catalog, kind, &pair.value)
                    .map_err(|why| Failure::Param { given: pair.given.clone(), why: why.0 })?;
            }
        }
        Ok(())
    }

    /// What was given for this parameter; what was given for this capability comes first.
    pub fn value(&self, catalog: &Catalog, capability: &Capability, name: &str) -> Option<Value> {
        let mine = |own: bool| {
            let of = move |p: &&Pair| p.capability.as_ref().map(|c| *c == capability.name) == own.then_some(true);
            self.params.iter().rfind(|p| of(p) && p.name == name)
        };
        let pair = mine(true).or_else(|| mine(false))?;
        typed(catalog, type_of(catalog, capability, name)?, &pair.value).ok()
    }
}

/// The type of a parameter, or of the part of the key that stands for one.
pub fn type_of<'a>(catalog: &'a Catalog, capability: &'a Capability, name: &str) -> Option<&'a Type> {
    let anchored = || {
        let part = capability.anchor.iter().find(|part| *part == name)?;
        Some(&catalog.entity(&capability.entity)?.fields.get(part)?.kind)
    };
    capability.params.get(name).map(|p| &p.kind).or_else(anchored)
}

/// Why a text is no value of a type.
struct Untyped(String);

fn typed(catalog: &Catalog, kind: &Type, text: &str) -> Result<Value, Untyped> {
    let not = || Untyped(format!("`{text}` is no {}", kind.describe()));
    let json = || serde_json::from_str::<Value>(text).map_err(|_| Untyped(format!("`{text}` is no JSON")));
    let value = match kind {
        Type::String(_) | Type::Select(_) | Type::Date(_) | Type::Uuid => Value::from(text),
        Type::Integer => Value::from(text.parse::<i64>().map_err(|_| not())?),
        Type::Number | Type::Boolean => json().map_err(|_| not())?,
        Type::Array(_) | Type::MultiSelect(_) if text.starts_with('[') => json()?,
        Type::MultiSelect(_) => Value::Array(text.split(',').map(Value::from).collect()),
        Type::Array(of) => {
            Value::Array(text.split(',').map(|item| typed(catalog, of, item)).collect::<Result<_, _>>()?)
        }
        Type::Ref(target) => return reference(catalog, target, text),
        Type::Object(_) | Type::Union(_) | Type::Json => json()?,
    };
    kind.accept(&value).map_err(|cause| Untyped(cause.to_string()))?;
    Ok(value)
}

/// The key: as it is where it has one part, a JSON object where it has several.
fn reference(catalog: &Catalog, target: &str, text: &str) -> Result<Value, Untyped> {
    let Some(entity) = catalog.entity(target) else { return Ok(Value::from(text)) };
    let key: Vec<&catalog::Field> = entity.key_fields().collect();
    if let [only] = key.as_slice() {
        return typed(catalog, &only.kind, text);
    }
    let sample: Vec<String> = key.iter().map(|f| format!("\"{}\": …", f.name)).collect();
    let wanted = || Untyped(format!("a {target} is written {{{}}}", sample.join(", ")));
    let value: Value = serde_json::from_str(text).map_err(|_| wanted())?;
    let whole = value.as_object().is_some_and(|o| key.iter().all(|f| o.get(&f.name).is_some_and(|v| !v.is_null())));
    if whole { Ok(value) } else { Err(wanted()) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::shipped;
    use serde_json::json;

    fn why(params: &[&str]) -> String {
        let demo = shipped::demo().unwrap();
        let reads: Vec<&Capability> = demo.capabilities.values().filter(|c| c.kind.is_read()).collect();
        let params: Vec<String> = params.iter().map(|p| (*p).to_owned()).collect();
        match Given::parse(&params).and_then(|given| given.check(&demo, &reads)) {
            Ok(()) => String::new(),
            Err(failure) => failure.to_string(),
        }
    }

    #[test]
    fn values_take_the_type_of_their_parameter() {
        let demo = shipped::demo().unwrap();
        let params = ["number=7", "ticket_list.state=open", "state=done", r#"ticket={"project":"OPS","number":1}"#];
        let given = Given::parse(&params.map(str::to_owned)).unwrap();
        let value = |capability, name| given.value(&demo, demo.capability(capability).unwrap(), name);
        assert_eq!(value("ticket_get", "number"), Some(json!(7)));
        assert_eq!(value("ticket_list", "state"), Some(json!("open")), "its own comes first");
        assert_eq!(value("comment_list", "ticket"), Some(json!({"project": "OPS", "number": 1})));
        assert_eq!(value("project_list", "state"), None);
    }

    #[test]
    fn what_fits_nowhere_is_refused_with_what_would() {
        assert_eq!(why(&["number=7", "project=OPS", "team=platform"]), "");
        assert_eq!(why(&["number"]), "--param number: write NAME=VALUE");
        assert_eq!(why(&["=7"]), "--param =7: write NAME=VALUE");
        assert_eq!(why(&["number=x"]), "--param number=x: `x` is no int");
        assert!(why(&["state=opne"]).contains("`opne` is not one of open | doing | done"));
        assert!(why(&["stat=open"]).contains("no read that is called has a parameter `stat`; one of: state"));
        assert!(why(&["person_get.number=1"]).contains("has a parameter `number`"));
        assert!(why(&["ticket=7"]).contains(r#"a Ticket is written {"project": …, "number": …}"#));
    }
}
