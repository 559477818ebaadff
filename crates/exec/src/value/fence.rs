//! The check of a template before it is compiled, which refuses templates that could harm the server.
//! Invariant: a template that passes can neither exhaust the stack of its parser nor double a value until memory runs out.
//! Its tags are short, few and shallow, no tag stores a value for a later one, and `*`, which repeats text, is refused.

/// The most bytes in a tag.
const TAG_BYTES: usize = 1_000;
/// The most tags in a template.
const TAGS: usize = 2_000;
/// The most nested brackets in a tag, and the most nested blocks.
const DEPTH: usize = 16;
/// The most `elif` in a template.
const BRANCHES: usize = 100;

/// The only words with which a `{% … %}` tag may begin. `set`, `with` and `macro` would store values.
const STATEMENTS: [&str; 6] = ["for", "if", "elif", "else", "endfor", "endif"];

/// The reason for refusing a template.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The line of the refused tag, counted from 1.
    pub line: usize,
    pub why: String,
}

/// Refuses a template that could harm the server. Everything else is left to the compiler.
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
            // The tag or a quote in it is not closed. The compiler reports which, unless the tag is too long to parse safely.
            return if inner.len() > TAG_BYTES {
                refuse(format!("a tag has at most {TAG_BYTES} characters"))
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
        if tag.len() > TAG_BYTES {
            return refuse(format!("a tag has at most {TAG_BYTES} characters"));
        }
        if tags > TAGS {
            return refuse(format!("a template has at most {TAGS} tags"));
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
            if !STATEMENTS.contains(&word) {
                return refuse(format!(
                    "`{{% {} %}}` is not for templates here; they have for, if, elif, else",
                    clip(word)
                ));
            }
        }
        // Nested blocks and brackets are parsed by recursion, so a deep template would exhaust the stack.
        if depth > DEPTH || branches > BRANCHES || bracket_depth(tag) > DEPTH {
            return refuse(format!("nested deeper than {DEPTH}, or more than {BRANCHES} `elif`"));
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

/// Returns the position at which the tag closes, ignoring text inside its strings.
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

/// Returns the characters of a tag that are not in its strings.
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

/// Returns how deep the brackets of a tag are nested.
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

/// Returns the first characters of a word, for a message.
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
