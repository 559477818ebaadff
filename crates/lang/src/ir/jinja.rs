//! Finds the names that a Jinja template uses, such as `r.owner.name`, without rendering the template.
//! Invariant: each character is read once. A template that Jinja accepts is never refused.

/// The names that the tags of a template use.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TemplateNames<'t> {
    /// The dotted names, each split at its dots, such as `["r", "owner", "name"]`.
    pub chains: Vec<Vec<&'t str>>,
    /// The loop variables that mean a row, such as `r` in `{% for r in rows %}`.
    pub row_names: Vec<&'t str>,
}

/// Returns the names in the tags of a template, or `None` if a tag is not closed.
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
        if let Some(loop_header) = words.strip_prefix("for ")
            && let Some((name, over)) = loop_header.split_once(" in ")
            && over.trim() == "rows"
        {
            names.row_names.push(name.trim());
        }
        collect_tag_names(tag, &mut names.chains);
    }
    Some(names)
}

/// Adds the dotted names of one tag to `chains`.
fn collect_tag_names<'t>(tag: &'t str, chains: &mut Vec<Vec<&'t str>>) {
    let mut cursor = TagCursor { text: tag, at: 0 };
    while let Some(c) = cursor.peek() {
        match c {
            '"' | '\'' => {
                cursor.read_quoted(c);
            }
            c if c.is_alphabetic() || c == '_' => {
                let mut chain = vec![cursor.read_word()];
                while let Some(next) = cursor.read_next_name() {
                    chain.extend(next);
                }
                chains.push(chain);
            }
            c if c.is_ascii_digit() => {
                cursor.read_word();
            }
            _ => cursor.advance(),
        }
    }
}

/// A reading position in the text of a tag.
struct TagCursor<'t> {
    text: &'t str,
    /// The byte offset of the next character.
    at: usize,
}

impl<'t> TagCursor<'t> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn advance(&mut self) {
        self.at += self.peek().map_or(0, char::len_utf8);
    }

    /// Reads a word of letters, digits and underscores.
    fn read_word(&mut self) -> &'t str {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_alphanumeric() || c == '_') {
            self.advance();
        }
        &self.text[start..self.at]
    }

    /// Reads a quoted string and returns the text between its quotes.
    fn read_quoted(&mut self, quote: char) -> &'t str {
        self.advance();
        let start = self.at;
        while let Some(c) = self.peek() {
            if c == quote {
                let text = &self.text[start..self.at];
                self.advance();
                return text;
            }
            if c == '\\' {
                self.advance();
            }
            self.advance();
        }
        &self.text[start..]
    }

    /// Reads the next element of a dotted name: `.name`, `["name"]`, or `[0]`, which adds no name. Returns `None` at
    /// the end of the dotted name.
    fn read_next_name(&mut self) -> Option<Option<&'t str>> {
        let start = self.at;
        match self.peek()? {
            '.' => {
                self.advance();
                let word = self.read_word();
                if word.is_empty() {
                    self.at = start;
                    return None;
                }
                Some(Some(word).filter(|w| !w.starts_with(|c: char| c.is_ascii_digit())))
            }
            '[' => {
                self.advance();
                let inner = match self.peek()? {
                    quote @ ('"' | '\'') => Some(self.read_quoted(quote)),
                    '0'..='9' | '-' => {
                        self.advance();
                        self.read_word();
                        None
                    }
                    _ => {
                        self.at = start;
                        return None;
                    }
                };
                if self.peek() == Some(']') {
                    self.advance();
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
    fn only_names_inside_of_tags_are_collected() {
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
