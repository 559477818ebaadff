//! The check of a template before it is compiled. It refuses templates that could exhaust the server's stack or memory.
//! Invariant: an accepted template can neither exhaust the parser's stack nor double a value until memory is full. Its tags are
//! short, few and not deeply nested; no tag stores a value for a later tag; and the operator `*`, which repeats text, is
//! refused.

/// The maximum size of a tag in bytes.
const MAX_TAG_BYTES: usize = 1_000;
/// The maximum number of tags in a template.
const MAX_TAGS: usize = 2_000;
/// The maximum nesting of brackets in a tag, and of blocks in a template.
const MAX_NESTING: usize = 16;
/// The maximum number of `elif` tags in a template.
const MAX_ELIF_TAGS: usize = 100;

/// The words with which a `{% … %}` tag may begin. `set`, `with` and `macro` are excluded, because they store values.
const ALLOWED_TAG_WORDS: [&str; 6] = ["for", "if", "elif", "else", "endfor", "endif"];

/// The place and the reason of a refusal.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The line of the refused tag, counted from 1.
    pub line: usize,
    pub why: String,
}

/// Returns an error if the template could exhaust stack or memory. Other mistakes are reported by the compiler.
pub fn check(source: &str) -> Result<(), Refusal> {
    let mut rest = source;
    let mut tags = 0;
    let mut depth = 0_usize;
    let mut branches = 0;
    while let Some(start) = rest.find("{{").into_iter().chain(rest.find("{%")).chain(rest.find("{#")).min() {
        let line = source[..source.len() - rest.len() + start].matches('\n').count() + 1;
        let refuse = |why: String| Err(Refusal { line, why });
        let kind = rest.as_bytes()[start + 1];
        let close = match kind {
            b'{' => "}}",
            b'%' => "%}",
            _ => "#}",
        };
        let inner = &rest[start + 2..];
        let Some(end) = tag_end(inner, close, kind == b'#') else {
            // The tag, or a string in the tag, is not closed. The compiler reports this mistake, unless the tag is too long to
            // be parsed safely.
            return if inner.len() > MAX_TAG_BYTES {
                refuse(format!("a tag has at most {MAX_TAG_BYTES} characters"))
            } else {
                Ok(())
            };
        };
        let tag = &inner[..end];
        rest = &inner[end + 2..];
        tags += 1;
        if kind == b'#' {
            continue;
        }
        if tag.len() > MAX_TAG_BYTES {
            return refuse(format!("a tag has at most {MAX_TAG_BYTES} characters"));
        }
        if tags > MAX_TAGS {
            return refuse(format!("a template has at most {MAX_TAGS} tags"));
        }
        if kind == b'%' {
            let word = tag.trim_start_matches(['-', '+']).split_whitespace().next().unwrap_or_default();
            let word = word.trim_end_matches(['-', '+']);
            match word {
                "for" | "if" => depth += 1,
                "endfor" | "endif" => depth = depth.saturating_sub(1),
                "elif" => branches += 1,
                _ => {}
            }
            if !ALLOWED_TAG_WORDS.contains(&word) {
                return refuse(format!(
                    "`{{% {} %}}` is not for templates here; they have for, if, elif, else",
                    clip(word)
                ));
            }
        }
        // Nested blocks and brackets are parsed by recursion, so a deep template would exhaust the stack.
        if depth > MAX_NESTING || branches > MAX_ELIF_TAGS || bracket_depth(tag) > MAX_NESTING {
            return refuse(format!("nested deeper than {MAX_NESTING}, or more than {MAX_ELIF_TAGS} `elif`"));
        }
        if outside_strings(tag).any(|c| c == '*') {
            return refuse("`*` is not for templates here: it repeats text".to_owned());
        }
        if outside_strings(tag).collect::<String>().contains("indent") {
            return refuse("`indent` is not for templates here".to_owned());
        }
    }
    Ok(())
}

/// Returns the position of the tag's closing delimiter. Delimiters inside strings are ignored.
fn tag_end(inner: &str, close: &str, is_comment: bool) -> Option<usize> {
    if is_comment {
        return inner.find(close);
    }
    let mut quote = None;
    let mut escaped = false;
    for (position, c) in inner.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if inner[position..].starts_with(close) => return Some(position),
            None if c == '"' || c == '\'' => quote = Some(c),
            None => {}
        }
    }
    None
}

/// Returns the characters of a tag that are outside of string literals.
fn outside_strings(tag: &str) -> impl Iterator<Item = char> + '_ {
    let mut quote = None;
    let mut escaped = false;
    tag.chars().filter(move |c| match quote {
        Some(_) if escaped => {
            escaped = false;
            false
        }
        Some(open) => {
            escaped = *c == '\\';
            if *c == open {
                quote = None;
            }
            false
        }
        None => {
            if matches!(c, '"' | '\'') {
                quote = Some(*c);
            }
            quote.is_none()
        }
    })
}

/// Returns the maximum nesting of brackets in a tag.
fn bracket_depth(tag: &str) -> usize {
    let mut depth = 0_usize;
    let mut most = 0;
    for c in outside_strings(tag) {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        most = most.max(depth);
    }
    most
}

/// Returns the first 30 characters of a word, for an error message.
fn clip(word: &str) -> String {
    word.chars().take(30).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_template_passes() {
        let report = "{% for r in rows %}{% if r.votes > 3 %}- {{ r.title|upper }} \"{{ '}}*' ~ r.n }}\"\n{% elif r.x %}{% else %}{% endif %}{% endfor %}{# a * note #}";
        assert_eq!(check(report), Ok(()));
        assert_eq!(check("no tags { at all }"), Ok(()));
        assert_eq!(check("{{ unclosed"), Ok(()), "the compiler reports it");
    }

    #[test]
    fn a_dangerous_template_is_refused_with_its_line() {
        let bombs = [
            format!("a\n{{{{ {}1 }}}}", "-".repeat(20_000)),
            format!("\n{{{{ 1{} }}}}", " + 1".repeat(15_000)),
            format!("\n{{{{ rows{} }}}}", ".a".repeat(15_000)),
            format!("\n{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(5_000)),
            format!("\n{}", "{% if 1 %}".repeat(1_000)),
            format!("\n{{{{ {}1{} }}}}", "[".repeat(100), "]".repeat(100)),
            "\n{% set a = rows %}".to_owned(),
            "\n{% with a = rows %}".to_owned(),
            "\n{% macro m() %}".to_owned(),
            "\n{%- set b = a ~ a -%}".to_owned(),
            "\n{{ 'a' * 1000000000 }}".to_owned(),
            "\n{{ rows|tojson(indent=100000000) }}".to_owned(),
            format!("\n{{{{ 'a{} }}}}", "x".repeat(2_000)),
        ];
        for bomb in bombs {
            assert_eq!(check(&bomb).unwrap_err().line, 2, "{}", &bomb[..40.min(bomb.len())]);
        }
        assert!(check(&"{{ 1 }}".repeat(3_000)).is_err());
    }
}
