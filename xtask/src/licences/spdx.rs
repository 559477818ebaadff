//! Evaluates an SPDX licence expression with `OR`, `AND`, `WITH`, parentheses, and `/`, which older manifests use for `OR`.
//! Invariant: `X WITH E` is allowed only if the list has `X WITH E`, as in cargo-deny. An expression that cannot be parsed is an error.

use std::fmt;

/// Returns the licences that the expression requires and the list does not allow. The result is empty if the expression is satisfied.
pub fn refused(expression: &str, allow: &[String]) -> Result<Vec<String>, Error> {
    let mut reader = Reader { words: words(expression), next: 0, allow };
    let refused = reader.any()?;
    match reader.take() {
        None => Ok(refused),
        Some(word) => Err(Error::Unexpected(word)),
    }
}

#[derive(Debug, PartialEq)]
pub enum Error {
    Unexpected(String),
    Ends,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unexpected(word) => write!(f, "`{word}` is out of place"),
            Error::Ends => f.write_str("it ends too early"),
        }
    }
}

struct Reader<'a> {
    words: Vec<String>,
    next: usize,
    allow: &'a [String],
}

impl Reader<'_> {
    /// Reads `a OR b`. If neither is allowed, the shorter list of missing licences is returned.
    fn any(&mut self) -> Result<Vec<String>, Error> {
        let mut best = self.all()?;
        while self.accept("OR") || self.accept("/") {
            let other = self.all()?;
            if other.len() < best.len() {
                best = other;
            }
        }
        Ok(best)
    }

    fn all(&mut self) -> Result<Vec<String>, Error> {
        let mut refused = self.one()?;
        while self.accept("AND") {
            refused.extend(self.one()?);
        }
        Ok(refused)
    }

    fn one(&mut self) -> Result<Vec<String>, Error> {
        if self.accept("(") {
            let inner = self.any()?;
            return match self.take() {
                Some(word) if word == ")" => Ok(inner),
                Some(word) => Err(Error::Unexpected(word)),
                None => Err(Error::Ends),
            };
        }
        let mut licence = self.id()?;
        if self.accept("WITH") {
            licence = format!("{licence} WITH {}", self.id()?);
        }
        let allowed = self.allow.iter().any(|a| a.eq_ignore_ascii_case(&licence));
        Ok(if allowed { Vec::new() } else { vec![licence] })
    }

    fn id(&mut self) -> Result<String, Error> {
        match self.take() {
            Some(word) if matches!(word.as_str(), "OR" | "AND" | "WITH" | "(" | ")" | "/") => {
                Err(Error::Unexpected(word))
            }
            Some(word) => Ok(word),
            None => Err(Error::Ends),
        }
    }

    fn accept(&mut self, word: &str) -> bool {
        let matches = self.words.get(self.next).is_some_and(|w| w == word);
        self.next += usize::from(matches);
        matches
    }

    fn take(&mut self) -> Option<String> {
        let word = self.words.get(self.next).cloned();
        self.next += 1;
        word
    }
}

fn words(expression: &str) -> Vec<String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " / ");
    spaced.split_whitespace().map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(expression: &str) -> Vec<String> {
        let allow = ["MIT", "Apache-2.0", "ISC", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"].map(String::from);
        refused(expression, &allow).unwrap()
    }

    #[test]
    fn satisfied_expressions_miss_no_licence() {
        for expression in [
            "MIT",
            "mit",
            "MIT/GPL-3.0",
            "GPL-3.0 / MIT",
            "Apache-2.0 AND ISC",
            "(MIT OR GPL-3.0) AND Unicode-3.0",
            "GPL-2.0 WITH Classpath-exception-2.0 OR MIT",
            "Apache-2.0 WITH LLVM-exception",
            "GPL-3.0 OR (MIT AND ISC)",
            "((MIT))",
        ] {
            assert!(missing(expression).is_empty(), "{expression}");
        }
    }

    #[test]
    fn refused_expressions_name_the_missing_licences() {
        assert_eq!(missing("GPL-3.0"), ["GPL-3.0"]);
        assert_eq!(missing("MIT AND OpenSSL"), ["OpenSSL"]);
        assert_eq!(missing("(MIT OR ISC) AND (GPL-3.0 OR AGPL-3.0)"), ["GPL-3.0"]);
        assert_eq!(missing("MIT WITH LLVM-exception"), ["MIT WITH LLVM-exception"]);
        assert_eq!(missing("GPL-2.0+ AND Zlib OR MPL-2.0"), ["MPL-2.0"]);
    }

    #[test]
    fn and_binds_tighter_than_or() {
        assert!(missing("MIT OR GPL-3.0 AND AGPL-3.0").is_empty());
        assert_eq!(missing("GPL-3.0 AND AGPL-3.0 OR GPL-3.0 AND MIT"), ["GPL-3.0"]);
    }

    #[test]
    fn an_expression_that_cannot_be_read_is_an_error() {
        for expression in ["", "MIT OR", "OR MIT", "(MIT", "MIT)", "MIT ISC", "MIT WITH", "MIT AND OR ISC", "()"] {
            assert!(refused(expression, &["MIT".to_string()]).is_err(), "{expression}");
        }
    }
}
