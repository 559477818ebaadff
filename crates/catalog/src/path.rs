//! Paths to values inside an answer: `owner.id`, `labels[].name`, and `@odata\.nextLink` for a name with a dot.
//! Invariant: a path walks down objects and arrays only. Following a path cannot fail: the result is a value or
//! `None`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A parsed path. The value at the empty path is the whole answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct DataPath(Vec<PathStep>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum PathStep {
    /// The member of an object with this name, or the item of an array if the name is a number.
    Name(String),
    /// `[]`: every item of an array. The remaining steps are followed in each item, and items without a value are
    /// left out.
    Each,
}

/// The step that follows a given prefix of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextStep<'p> {
    /// The path has no further step.
    End,
    /// The next step is this member of an object.
    Member(&'p str),
    /// The next step is an item by number, or every item. A number can also be the name of an object's member.
    Items,
}

impl DataPath {
    /// Returns the value at the path. A path with `[]` returns a new array of all values at the path.
    pub fn find<'a>(&self, value: &'a Value) -> Option<Cow<'a, Value>> {
        follow_steps(&self.0, value)
    }

    /// Moves the value at the path out of `value` and leaves `null` there. A path with `[]` returns `None`, because
    /// it has several values.
    pub fn take(&self, value: &mut Value) -> Option<Value> {
        let target = self.0.iter().try_fold(value, |current, step| match (step, current) {
            (PathStep::Name(name), Value::Object(map)) => map.get_mut(name),
            (PathStep::Name(name), Value::Array(items)) => items.get_mut(name.parse::<usize>().ok()?),
            _ => None,
        });
        target.map(Value::take)
    }

    /// Returns the names of a path that walks down objects only. Returns `None` if a step may select an item of an
    /// array.
    pub(crate) fn object_member_names(&self) -> Option<Vec<&str>> {
        let members = self.0.iter().map(|step| match step {
            PathStep::Name(name) if !is_number(name) => Some(name.as_str()),
            _ => None,
        });
        members.collect()
    }

    /// Returns the step that follows the prefix `names`, or `None` if the path does not begin with these names.
    pub(crate) fn step_after(&self, names: &[&str]) -> Option<NextStep<'_>> {
        let is_same = |(step, name): (&PathStep, &&str)| matches!(step, PathStep::Name(own) if own == name);
        if self.0.len() < names.len() || !self.0.iter().zip(names).all(is_same) {
            return None;
        }
        Some(match self.0.get(names.len()) {
            None => NextStep::End,
            Some(PathStep::Name(name)) if !is_number(name) => NextStep::Member(name),
            Some(_) => NextStep::Items,
        })
    }

    /// Returns the names of the path, from which a GraphQL selection is built. The step `[]` has no name and is left
    /// out.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|step| match step {
            PathStep::Name(name) => Some(name.as_str()),
            PathStep::Each => None,
        })
    }
}

fn follow_steps<'a>(steps: &[PathStep], value: &'a Value) -> Option<Cow<'a, Value>> {
    let mut current = value;
    for (n, step) in steps.iter().enumerate() {
        current = match (step, current) {
            (PathStep::Name(name), Value::Object(map)) => map.get(name)?,
            (PathStep::Name(name), Value::Array(items)) => items.get(name.parse::<usize>().ok()?)?,
            (PathStep::Each, Value::Array(items)) => {
                let rest = &steps[n + 1..];
                let values = items.iter().filter_map(|item| follow_steps(rest, item)).map(Cow::into_owned);
                return Some(Cow::Owned(Value::Array(values.collect())));
            }
            _ => return None,
        };
    }
    Some(Cow::Borrowed(current))
}

/// Returns whether `follow_steps` would read this name as the number of an item in an array.
fn is_number(name: &str) -> bool {
    name.parse::<usize>().is_ok()
}

impl From<String> for DataPath {
    fn from(text: String) -> Self {
        let mut steps = Vec::new();
        for part in split_at_dots(&text).filter(|part| !part.is_empty()) {
            let name = part.trim_end_matches("[]");
            if !name.is_empty() {
                steps.push(PathStep::Name(name.replace("\\.", ".")));
            }
            steps.extend(std::iter::repeat_n(PathStep::Each, (part.len() - name.len()) / 2));
        }
        Self(steps)
    }
}

/// Splits the text at its dots. The escaped dot `\.` is part of a name and no separator.
fn split_at_dots(text: &str) -> impl Iterator<Item = &str> {
    let mut escaped = false;
    text.split(move |c: char| {
        let is_separator = c == '.' && !escaped;
        escaped = c == '\\';
        is_separator
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
                PathStep::Name(name) => {
                    f.write_str(if n == 0 { "" } else { "." })?;
                    f.write_str(&name.replace('.', "\\."))?;
                }
                PathStep::Each => f.write_str("[]")?,
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
    fn a_path_returns_a_value_or_none() {
        let value = json!({"a": {"b": [10, {"c": 1}]}});
        let find = |path: &str| DataPath::from(path.to_owned()).find(&value).map(|v| v.into_owned());
        assert_eq!(find("a.b.1.c"), Some(json!(1)));
        assert_eq!(find(""), Some(value.clone()));
        assert_eq!(find("a.x.c"), None);
        assert_eq!(find("a.b.9"), None);
    }

    #[test]
    fn an_escaped_dot_belongs_to_a_name() {
        let value = json!({"@odata.nextLink": "u", "a": {"b.c": [1]}, "@odata": {"nextLink": "other"}});
        let find = |path: &str| DataPath::from(path.to_owned()).find(&value).map(|v| v.into_owned());
        assert_eq!(find("@odata\\.nextLink"), Some(json!("u")));
        assert_eq!(find("@odata.nextLink"), Some(json!("other")));
        assert_eq!(find("a.b\\.c.0"), Some(json!(1)));
        assert_eq!(DataPath::from("a.b\\.c[].d".to_owned()).to_string(), "a.b\\.c[].d");
    }

    #[test]
    fn brackets_follow_the_rest_of_the_path_in_each_item() {
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
