//! Where a value lies inside an answer: `owner.id`.
//! Invariant: a path only walks down objects and array indexes; it never fails, it finds or does not find.

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct DataPath(Vec<String>);

impl DataPath {
    pub fn find<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(value, |at, name| match at {
            Value::Object(map) => map.get(name),
            Value::Array(items) => items.get(name.parse::<usize>().ok()?),
            _ => None,
        })
    }

    /// The same place, to take something out of it.
    pub fn find_mut<'a>(&self, value: &'a mut Value) -> Option<&'a mut Value> {
        self.0.iter().try_fold(value, |at, name| match at {
            Value::Object(map) => map.get_mut(name),
            Value::Array(items) => items.get_mut(name.parse::<usize>().ok()?),
            _ => None,
        })
    }

    /// The names on the way.
    pub fn names(&self) -> &[String] {
        &self.0
    }
}

impl From<String> for DataPath {
    fn from(text: String) -> Self {
        Self(text.split('.').filter(|part| !part.is_empty()).map(str::to_owned).collect())
    }
}

impl From<DataPath> for String {
    fn from(path: DataPath) -> String {
        path.0.join(".")
    }
}

impl std::fmt::Display for DataPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::DataPath;
    use serde_json::json;

    #[test]
    fn finds_and_does_not_find() {
        let value = json!({"a": {"b": [10, {"c": 1}]}});
        let find = |path: &str| DataPath::from(path.to_owned()).find(&value).cloned();
        assert_eq!(find("a.b.1.c"), Some(json!(1)));
        assert_eq!(find(""), Some(value.clone()));
        assert_eq!(find("a.x.c"), None);
        assert_eq!(find("a.b.9"), None);
        let mut taken = value.clone();
        let path = DataPath::from("a.b.1.c".to_owned());
        assert_eq!(path.find_mut(&mut taken).map(serde_json::Value::take), Some(json!(1)));
        assert_eq!(taken, json!({"a": {"b": [10, {"c": null}]}}));
    }
}
