//! Conversion of texts to names: words, names that a catalog accepts, singular and plural, first sentences.
//! Invariant: `field_name` and `pascal_case` return a valid catalog name for any input.

use std::collections::HashSet;

/// The maximum length of a name in bytes. Specifications contain names of any length, and longer names do not help a reader.
const MAX_NAME_BYTES: usize = 48;

/// Words with a meaning after a `.` in the plasm language. Methods and relations must not have these names.
const RESERVED_METHOD_NAMES: [&str; 10] =
    ["limit", "page_size", "sort", "filter", "aggregate", "group_by", "distinct", "first", "last", "singleton"];

/// Returns the words of a text in lower case: `issues/listForRepo` has `issues`, `list`, `for`, `repo`.
pub fn words(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut previous = ' ';
    let mut chars = text.chars().take(200).peekable();
    while let Some(c) = chars.next() {
        if !c.is_ascii_alphanumeric() {
            // An apostrophe does not end a word.
            if c != '\'' && c != '’' {
                end_word(&mut out, &mut word);
            }
            previous = ' ';
            continue;
        }
        // In `HTTPRoute`, the last capital before a small letter starts the second word.
        let starts_word = c.is_ascii_uppercase()
            && (previous.is_ascii_lowercase()
                || previous.is_ascii_digit()
                || (previous.is_ascii_uppercase() && chars.peek().is_some_and(char::is_ascii_lowercase)));
        if starts_word {
            end_word(&mut out, &mut word);
        }
        word.push(c.to_ascii_lowercase());
        previous = c;
    }
    end_word(&mut out, &mut word);
    out
}

fn end_word(out: &mut Vec<String>, word: &mut String) {
    if !word.is_empty() {
        out.push(std::mem::take(word));
    }
}

pub fn snake_case(text: &str) -> String {
    words(text).join("_")
}

/// Returns whether the text in snake case is `wanted`. The importer calls it for every property of every answer, so it first
/// compares the letters without an allocation.
pub fn has_snake_case(text: &str, wanted: &str) -> bool {
    letters(text).eq(letters(wanted)) && snake_case(text) == wanted
}

fn letters(text: &str) -> impl Iterator<Item = u8> {
    text.bytes().filter(u8::is_ascii_alphanumeric).map(|b| b.to_ascii_lowercase())
}

/// Returns the name of an entity: `PullRequest`.
pub fn pascal_case(words: &[String]) -> String {
    let mut out = String::new();
    for word in words {
        let mut chars = word.chars();
        out.extend(chars.next().map(|c| c.to_ascii_uppercase()));
        out.extend(chars);
        if out.len() > MAX_NAME_BYTES {
            out.truncate(MAX_NAME_BYTES);
            break;
        }
    }
    if out.is_empty() || out.starts_with(|c: char| c.is_ascii_digit()) {
        out.insert_str(0, "Item");
    }
    out
}

/// Returns the prefix of an entity's capability names. `catalog::Capability::method_name` removes the same prefix.
pub fn entity_prefix(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    let mut after_lowercase = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && after_lowercase {
            out.push('_');
        }
        after_lowercase = c.is_ascii_lowercase() || c.is_ascii_digit();
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// Returns whether a dotted path can contain a property of this name.
pub fn is_reachable(name: &str) -> bool {
    !name.is_empty() && name.len() <= 100 && !name.contains(['.', '[', ']']) && !name.contains(char::is_control)
}

/// Returns whether a parameter of this name can be sent in a query.
pub fn is_sendable(name: &str) -> bool {
    !name.is_empty() && name.len() <= 100 && name.chars().all(|c| !c.is_control() && !" &=#?{}".contains(c))
}

/// Returns the name of a field or parameter: the text itself if it is a valid name, else its words in snake case.
pub fn field_name(text: &str) -> String {
    let is_name = text.len() <= MAX_NAME_BYTES
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        // A single `_` means the current row in a program.
        && text.bytes().any(|b| b.is_ascii_alphanumeric());
    let mut out = if is_name { text.to_owned() } else { snake_case(text) };
    out.truncate(MAX_NAME_BYTES);
    if out.is_empty() {
        out = "value".to_owned();
    }
    if out.starts_with(|c: char| c.is_ascii_digit()) {
        out.insert_str(0, "n_");
    }
    if looks_like_symbol(&out) {
        out.insert(1, '_');
    }
    out
}

/// Returns whether the text looks like a symbol of a session (`e1`, `m2`, `p3`, `r4`, `s5`). Names must not look like symbols.
fn looks_like_symbol(text: &str) -> bool {
    text.len() > 1 && text.starts_with(['e', 'm', 'p', 'r', 's']) && text.bytes().skip(1).all(|b| b.is_ascii_digit())
}

/// Returns the name of a method. A reserved word gets the prefix `do_`.
pub fn method_name(text: &str) -> String {
    let name = field_name(text);
    if RESERVED_METHOD_NAMES.contains(&name.as_str()) { format!("do_{name}") } else { name }
}

/// Returns the name of a relation. A reserved word gets the suffix `_rows`.
pub fn relation_name(text: &str) -> String {
    let name = field_name(text);
    if RESERVED_METHOD_NAMES.contains(&name.as_str()) { format!("{name}_rows") } else { name }
}

/// Reserves the name in `taken` and returns it. If the name is already used, the first unused number from 2 on is appended.
pub fn reserve_unique(taken: &mut HashSet<String>, name: String) -> String {
    if taken.insert(name.clone()) {
        return name;
    }
    let free = (2..).map(|n| format!("{name}_{n}")).find(|candidate| !taken.contains(candidate));
    let free = free.unwrap_or(name);
    taken.insert(free.clone());
    free
}

/// Returns the id of a catalog: up to three words of the title without filler such as "API". A longer title is replaced by the
/// name of the host.
pub fn catalog_id(title: &str, origin: &str) -> String {
    let noise = [
        "api",
        "apis",
        "rest",
        "the",
        "openapi",
        "swagger",
        "specification",
        "spec",
        "public",
        "v1",
        "v2",
        "v3",
        "official",
        "service",
        "services",
        "for",
        "and",
        "of",
        "web",
        "restful",
        "http",
        "reference",
    ];
    let letters = |word: &str| -> String {
        word.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
    };
    let is_number = |word: &String| word.bytes().all(|b| b.is_ascii_digit());
    let title = title.replace("'s", "").replace("’s", "");
    let words: Vec<String> = title
        .split([' ', '-', '_', '/', ':', '.'])
        .map(letters)
        .filter(|word| !noise.contains(&word.as_str()) && !is_number(word))
        .collect();

    let host = origin.split("://").nth(1).and_then(|rest| rest.split(['/', ':']).next()).unwrap_or_default();
    let labels: Vec<&str> = host.split('.').filter(|label| !matches!(*label, "api" | "www" | "example")).collect();
    let host_name = labels.len().checked_sub(2).and_then(|at| labels.get(at)).copied().unwrap_or_default();

    let id = if words.is_empty() || (words.len() > 3 && !host_name.is_empty()) {
        letters(host_name)
    } else {
        words.into_iter().take(3).collect::<Vec<_>>().join("-")
    };
    let id: String = id.chars().take(40).collect();
    if id.is_empty() { "imported".to_owned() } else { id }
}

/// Returns an entity's name as words with an article: `an open order` for `OpenOrder`.
pub fn with_article(name: &str) -> String {
    let words = words(name).join(" ");
    let article = if words.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
    format!("{article} {words}")
}

/// Returns whether a field of this name (in snake case) usually matters to a reader of a row.
pub fn is_informative(snake: &str) -> bool {
    let words = [
        "id",
        "name",
        "title",
        "state",
        "status",
        "number",
        "type",
        "kind",
        "description",
        "body",
        "text",
        "content",
        "url",
        "html_url",
        "email",
        "login",
        "username",
        "slug",
        "key",
        "code",
        "amount",
        "currency",
        "price",
        "total",
        "count",
        "date",
        "start",
        "end",
        "created",
        "updated",
        "created_at",
        "updated_at",
        "due",
        "priority",
        "owner",
        "author",
        "user",
        "parent",
        "summary",
        "label",
        "labels",
        "tags",
        "message",
        "subject",
        "active",
        "enabled",
        "value",
    ];
    words.contains(&snake)
}

pub fn singular(word: &str) -> String {
    let replace_ending = |end: &str, with: &str| word.strip_suffix(end).map(|stem| format!("{stem}{with}"));
    match word {
        "people" => return "person".to_owned(),
        "children" => return "child".to_owned(),
        "indices" => return "index".to_owned(),
        "aliases" => return "alias".to_owned(),
        "caches" => return "cache".to_owned(),
        "series" | "news" | "data" | "media" | "address" | "status" | "analysis" | "sms" | "dns" | "https" | "aws"
        | "ios" | "os" | "gps" | "css" | "js" | "rss" | "tls" | "business" | "access" | "progress" | "process"
        | "class" | "canvas" | "bus" | "gas" | "lens" | "basis" => return word.to_owned(),
        _ => {}
    }
    if word.ends_with("ss") || word.ends_with("us") || word.ends_with("is") || word.len() < 3 {
        return word.to_owned();
    }
    let es_endings = ["sses", "shes", "ches", "xes", "zzes", "uses"];
    let only_s = word == "uses" || word.ends_with("auses") || word.ends_with("ouses");
    if es_endings.iter().any(|end| word.ends_with(end)) && !only_s {
        return replace_ending("es", "").unwrap_or_default();
    }
    replace_ending("ies", "y").or_else(|| replace_ending("s", "")).unwrap_or_else(|| word.to_owned())
}

/// Returns whether a word is a plural.
pub fn is_plural(word: &str) -> bool {
    singular(word) != word
}

pub fn plural(word: &str) -> String {
    match word {
        "person" => "people".to_owned(),
        "child" => "children".to_owned(),
        _ if is_plural(word) => word.to_owned(),
        _ if word.ends_with('y') && !word.ends_with("ay") && !word.ends_with("ey") && !word.ends_with("oy") => {
            format!("{}ies", &word[..word.len() - 1])
        }
        _ if ["s", "x", "ch", "sh"].iter().any(|end| word.ends_with(end)) => format!("{word}es"),
        _ => format!("{word}s"),
    }
}

/// Returns the first sentence of a text without markup, cut to at most `max` characters.
pub fn first_sentence(text: &str, max: usize) -> String {
    let mut plain = String::new();
    let mut in_tag = false;
    for c in text.trim_start().chars().take(600) {
        match c {
            '<' => in_tag = true,
            '>' if in_tag => in_tag = false,
            '`' | '*' | '#' | '\\' => {}
            '\n' if !in_tag && plain.trim_end().ends_with(['.', ':']) => break,
            _ if in_tag => {}
            c if c.is_control() || c.is_whitespace() => plain.push(' '),
            c => plain.push(c),
        }
    }
    let plain = replace_links_by_text(&plain);
    let line = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    let end =
        line.match_indices(". ").map(|(at, _)| at).find(|at| !ends_in_abbreviation(&line[..*at])).unwrap_or(line.len());
    let line = line[..end].trim_end_matches(['.', ':', ';', ',']).trim();
    if line.chars().count() <= max {
        return line.to_owned();
    }
    let cut: String = line.chars().take(max).collect();
    let cut = cut.rsplit_once(' ').map_or(cut.as_str(), |(whole, _)| whole);
    format!("{}…", cut.trim_end_matches(['.', ':', ';', ',', '(']))
}

/// Returns whether the period after this text belongs to an abbreviation.
fn ends_in_abbreviation(text: &str) -> bool {
    ["e.g", "i.e", "etc", "vs"].iter().any(|short| text.ends_with(short))
}

/// Replaces each Markdown link `[text](address)` by its text.
fn replace_links_by_text(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("](") {
        let Some(open) = rest[..at].rfind('[') else { break };
        let Some(close) = rest[at..].find(')') else { break };
        out.push_str(&rest[..open]);
        out.push_str(&rest[open + 1..at]);
        rest = &rest[at + close + 1..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_has_words() {
        assert_eq!(words("issues/list-for-repo"), ["issues", "list", "for", "repo"]);
        assert_eq!(words("getHTTPRouteV2"), ["get", "http", "route", "v2"]);
        assert_eq!(words("OAuth2Token"), ["o", "auth2", "token"]);
        assert_eq!(words("!!"), Vec::<String>::new());
    }

    #[test]
    fn any_text_becomes_a_valid_name() {
        assert_eq!(field_name("created_at"), "created_at");
        assert_eq!(field_name("page[size]"), "page_size");
        assert_eq!(field_name("3d"), "n_3d");
        assert_eq!(field_name("p1"), "p_1");
        assert_eq!(field_name("@"), "value");
        assert_eq!(field_name(&"x".repeat(1_000_000)).len(), MAX_NAME_BYTES);
        assert_eq!(method_name("limit"), "do_limit");
    }

    #[test]
    fn singular_and_plural_are_inverse() {
        for (one, several) in [
            ("ticket", "tickets"),
            ("category", "categories"),
            ("status", "statuses"),
            ("address", "addresses"),
            ("branch", "branches"),
            ("release", "releases"),
            ("person", "people"),
            ("key", "keys"),
            ("box", "boxes"),
        ] {
            assert_eq!(singular(several), one);
            assert_eq!(plural(one), several);
            assert_eq!(singular(one), one);
        }
    }

    #[test]
    fn a_description_is_cut_to_its_first_sentence() {
        assert_eq!(first_sentence("Lists *all* [pets](https://x). More.", 80), "Lists all pets");
        assert_eq!(first_sentence("<p>One, e.g. two. Three</p>", 80), "One, e.g. two");
        assert_eq!(first_sentence(&"word ".repeat(50), 20), "word word word word…");
    }
}
