//! What a Jinja text names, without rendering it: `r.owner.name`, `_.title`.
//! Invariant: reads each character once; it never fails on what Jinja itself would take.

/// The dotted names inside the tags of a template.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TemplateNames<'t> {
    /// Each with the name it starts from first.
    pub chains: Vec<Vec<&'t str>>,
    /// Names that stand for one row: `r` of `{% for r in rows %}`.
    pub row_names: Vec<&'t str>,
}

/// None when a tag never closes.
pub fn template_names(source: &str) -> Option<TemplateNames<'_>> {
    let mut names = TemplateNames::default();
    let mut rest = source;
    while let Some(at) = rest.find('{') {
        let after = &rest[at + 1..];
        let close = match after.as_bytes().first() {
            Some(b'{') => "}}",
            Some(b'%') => "%}",
            Some(b'#') => "#}",
            _ => {
                rest = after;
                continue;
            }
        };
        let inner = &after[1..];
        let end = inner.find(close)?;
        let tag = &inner[..end];
        rest = &inner[end + 2..];
        if close == "#}" {
            continue;
        }
        let words = tag.trim_matches(['-', '+', ' ', '\t', '\n', '\r']);
        if close == "%}" && words == "raw" {
            rest = rest.find("endraw").map_or("", |end| &rest[end + "endraw".len()..]);
            rest = rest.find("%}").map_or("", |end| &rest[end + 2..]);
            continue;
        }
        if let Some(loop_) = words.strip_prefix("for ")
            && let Some((name, over)) = loop_.split_once(" in ")
            && over.trim() == "rows"
        {
            names.row_names.push(name.trim());
        }
        collect_tag_names(tag, &mut names.chains);
    }
    Some(names)
}

fn collect_tag_names<'t>(tag: &'t str, chains: &mut Vec<Vec<&'t str>>) {
    let mut chars = Chars { text: tag, at: 0 };
    while let Some(c) = chars.peek() {
        match c {
            '"' | '\'' => {
                chars.quoted(c);
            }
            c if c.is_alphabetic() || c == '_' => {
                let mut chain = vec![chars.word()];
                while let Some(next) = chars.next_name() {
                    chain.extend(next);
                }
                chains.push(chain);
            }
            c if c.is_ascii_digit() => {
                chars.word();
            }
            _ => chars.bump(),
        }
    }
}

struct Chars<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Chars<'t> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn bump(&mut self) {
        self.at += self.peek().map_or(0, char::len_utf8);
    }

    fn word(&mut self) -> &'t str {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_alphanumeric() || c == '_') {
            self.bump();
        }
        &self.text[start..self.at]
    }

    /// Past a string; gives what is in it.
    fn quoted(&mut self, quote: char) -> &'t str {
        self.bump();
        let start = self.at;
        while let Some(c) = self.peek() {
            if c == quote {
                let text = &self.text[start..self.at];
                self.bump();
                return text;
            }
            if c == '\\' {
                self.bump();
            }
            self.bump();
        }
        &self.text[start..]
    }

    /// `.name`, `["name"]`, or `[0]`, which adds no name.
    fn next_name(&mut self) -> Option<Option<&'t str>> {
        let start = self.at;
        match self.peek()? {
            '.' => {
                self.bump();
                let word = self.word();
                if word.is_empty() {
                    self.at = start;
                    return None;
                }
                Some(Some(word).filter(|w| !w.starts_with(|c: char| c.is_ascii_digit())))
            }
            '[' => {
                self.bump();
                let inner = match self.peek()? {
                    quote @ ('"' | '\'') => Some(self.quoted(quote)),
                    '0'..='9' | '-' => {
                        self.bump();
                        self.word();
                        None
                    }
                    _ => {
                        self.at = start;
                        return None;
                    }
                };
                if self.peek() == Some(']') {
                    self.bump();
                    return Some(inner);
                }
                self.at = start;
                None
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_in(source: &str) -> Vec<String> {
        template_names(source).unwrap_or_default().chains.iter().map(|c| c.join(".")).collect()
    }

    #[test]
    fn names_in_tags_only() {
        assert_eq!(names_in("a.b {{ _.title }} { c.d }"), ["_.title"]);
        assert_eq!(names_in("{{ rows[0].p4 }}{{ r['owner'].name|upper }}"), ["rows.p4", "r.owner.name", "upper"]);
        assert_eq!(names_in("{# x.y #}{% raw %}{{ x.y }}{% endraw %}{{ \"a.b\" }}"), Vec::<String>::new());
        assert_eq!(template_names("{% for r in rows %}{{ r.x }}{% endfor %}").unwrap_or_default().row_names, ["r"]);
        assert_eq!(template_names("{{ x"), None);
        assert_eq!(names_in("é {{ é.ü }} {"), ["é.ü"]);
        assert_eq!(names_in("{{ x[\"a }}"), ["x"]);
        assert_eq!(names_in("{{ x[y.z] }} {{ 1.5 }}"), ["x", "y.z"]);
    }
}
