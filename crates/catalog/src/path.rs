//! Where a value lies inside an answer: `owner.id`, `labels[].name`, `@odata\.nextLink` where a name has a dot.
//! Invariant: a path only walks down objects and arrays; it never fails, it finds or does not find.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct DataPath(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Name(String),
    /// `[]`: of each item; what an item does not have is left out.
    Each,
}

/// How a path goes on from a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beyond<'p> {
    /// It ends there.
    Nothing,
    Member(&'p str),
    /// By number, or to each; a number can also be a member's name.
    Items,
}

/// As `walk` reads it.
fn is_number(name: &str) -> bool {
    name.parse::<usize>().is_ok()
}

impl DataPath {
    pub fn find<'a>(&self, value: &'a Value) -> Option<Cow<'a, Value>> {
        walk(&self.0, value)
    }

    /// What is there, taken out; `None` also where the path leads to several places.
    pub fn take(&self, value: &mut Value) -> Option<Value> {
        let place = self.0.iter().try_fold(value, |at, step| match (step, at) {
            (Step::Name(name), Value::Object(map)) => map.get_mut(name),
            (Step::Name(name), Value::Array(items)) => items.get_mut(name.parse::<usize>().ok()?),
            _ => None,
        });
        place.map(Value::take)
    }

    /// Its names, where it walks down objects only; an item's number is no name.
    pub(crate) fn members(&self) -> Option<Vec<&str>> {
        let members = self.0.iter().map(|step| match step {
            Step::Name(name) if !is_number(name) => Some(name.as_str()),
            _ => None,
        });
        members.collect()
    }

    /// Where it goes on after these names; `None` where it does not begin with them.
    pub(crate) fn beyond(&self, names: &[&str]) -> Option<Beyond<'_>> {
        let along = |(step, name): (&Step, &&str)| matches!(step, Step::Name(own) if own == name);
        if self.0.len() < names.len() || !self.0.iter().zip(names).all(along) {
            return None;
        }
        Some(match self.0.get(names.len()) {
            None => Beyond::Nothing,
            Some(Step::Name(name)) if !is_number(name) => Beyond::Member(name),
            Some(_) => Beyond::Items,
        })
    }

    /// The names on the way, for a selection; `[]` selects nothing of its own.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|step| match step {
            Step::Name(name) => Some(name.as_str()),
            Step::Each => None,
        })
    }
}

fn walk<'a>(steps: &[Step], value: &'a Value) -> Option<Cow<'a, Value>> {
    let mut at = value;
    for (n, step) in steps.iter().enumerate() {
        at = match (step, at) {
            (Step::Name(name), Value::Object(map)) => map.get(name)?,
            (Step::Name(name), Value::Array(items)) => items.get(name.parse::<usize>().ok()?)?,
            (Step::Each, Value::Array(items)) => {
                let rest = &steps[n + 1..];
                let found = items.iter().filter_map(|item| walk(rest, item)).map(Cow::into_owned);
                return Some(Cow::Owned(Value::Array(found.collect())));
            }
            _ => return None,
        };
    }
    Some(Cow::Borrowed(at))
}

impl From<String> for DataPath {
    fn from(text: String) -> Self {
        let mut steps = Vec::new();
        for part in parts(&text).filter(|part| !part.is_empty()) {
            let name = part.trim_end_matches("[]");
            if !name.is_empty() {
                steps.push(Step::Name(name.replace("\\.", ".")));
            }
            steps.extend(std::iter::repeat_n(Step::Each, (part.len() - name.len()) / 2));
        }
        Self(steps)
    }
}

/// At the dots that no backslash stands before.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut escaped = false;
    text.split(move |c: char| {
        let ends = c == '.' && !escaped;
        escaped = c == '\\';
        ends
    })
}

impl From<DataPath> for String {
    fn from(path: DataPath) -> String {
        path.to_string()
    }
}

impl std::fmt::Display for DataPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (n, step) in self.0.iter().enumerate() {
            match step {
                Step::Name(name) => {
                    f.write_str(if n == 0 { "" } else { "." })?;
                    f.write_str(&name.replace('.', "\\."))?;
                }
                Step::Each => f.write_str("[]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::DataPath;
    use serde_json::json;

    #[test]
    fn finds_and_does_not_find() {
        let value = json!({"a": {"b": [10, {"c": 1}]}});
        let find = |path: &str| DataPath::from(path.to_owned()).find(&value).map(|v| v.into_owned());
        assert_eq!(find("a.b.1.c"), Some(json!(1)));
        assert_eq!(find(""), Some(value.clone()));
        assert_eq!(find("a.x.c"), None);
        assert_eq!(find("a.b.9"), None);
    }

    #[test]
    fn a_name_with_a_dot() {
        let value = json!({"@odata.nextLink": "u", "a": {"b.c": [1]}, "@odata": {"nextLink": "other"}});
        let find = |path: &str| DataPath::from(path.to_owned()).find(&value).map(|v| v.into_owned());
        assert_eq!(find("@odata\\.nextLink"), Some(json!("u")));
        assert_eq!(find("@odata.nextLink"), Some(json!("other")));
        assert_eq!(find("a.b\\.c.0"), Some(json!(1)));
        assert_eq!(DataPath::from("a.b\\.c[].d".to_owned()).to_string(), "a.b\\.c[].d");
    }

    #[test]
    fn of_each_item() {
        let value = json!({"labels": [{"name": "a"}, {"name": "b"}, {}], "rows": [[{"x": 1}], [{"x": 2}]]});
        let find = |path: &str| DataPath::from(path.to_owned()).find(&value).map(|v| v.into_owned());
        assert_eq!(find("labels[].name"), Some(json!(["a", "b"])));
        assert_eq!(find("rows[].0.x"), Some(json!([1, 2])));
        assert_eq!(find("rows[][].x"), Some(json!([[1], [2]])));
        assert_eq!(find("labels[].name[]"), Some(json!([])));
        for text in ["labels[].name", "rows[][].x", "a.b.1", "[].x", ""] {
            assert_eq!(DataPath::from(text.to_owned()).to_string(), text);
        }
    }
}
