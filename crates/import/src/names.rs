//! Names: words out of anything, words into names that a catalog takes, singular and plural.
//! Invariant: what comes out of `name` and `pascal` is a name that the catalog reader accepts, whatever went in.

use std::collections::HashSet;

/// Longer names are no help to anyone, and a specification may hold any.
const LONGEST: usize = 48;

/// What follows a `.` and means something to the language itself.
const POSTFIXES: [&str; 10] =
    ["limit", "page_size", "sort", "filter", "aggregate", "group_by", "distinct", "first", "last", "singleton"];

/// `issues/listForRepo` as `issues`, `list`, `for`, `repo`.
pub fn words(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    let mut chars = text.chars().take(200).peekable();
    while let Some(c) = chars.next() {
        if !c.is_ascii_alphanumeric() {
            // An apostrophe is inside its word.
            if c != '\'' && c != '’' {
                push(&mut out, &mut word);
            }
            before = ' ';
            continue;
        }
        let starts = c.is_ascii_uppercase()
            && (before.is_ascii_lowercase()
                || before.is_ascii_digit()
                || (before.is_ascii_uppercase() && chars.peek().is_some_and(char::is_ascii_lowercase)));
        if starts {
            push(&mut out, &mut word);
        }
        word.push(c.to_ascii_lowercase());
        before = c;
    }
    push(&mut out, &mut word);
    out
}

fn push(out: &mut Vec<String>, word: &mut String) {
    if !word.is_empty() {
        out.push(std::mem::take(word));
    }
}

pub fn snake(text: &str) -> String {
    words(text).join("_")
}

/// Whether `snake` of it is `wanted`. Asked of every property of every answer, so most are told apart by their letters.
pub fn is_snake(text: &str, wanted: &str) -> bool {
    letters(text).eq(letters(wanted)) && snake(text) == wanted
}

fn letters(text: &str) -> impl Iterator<Item = u8> {
    text.bytes().filter(u8::is_ascii_alphanumeric).map(|b| b.to_ascii_lowercase())
}

/// A name for an entity: `PullRequest`.
pub fn pascal(words: &[String]) -> String {
    let mut out = String::new();
    for word in words {
        let mut chars = word.chars();
        out.extend(chars.next().map(|c| c.to_ascii_uppercase()));
        out.extend(chars);
        if out.len() > LONGEST {
            out.truncate(LONGEST);
            break;
        }
    }
    if out.is_empty() || out.starts_with(|c: char| c.is_ascii_digit()) {
        out.insert_str(0, "Item");
    }
    // A digit at a word's start joins the one before: a split would read it otherwise.
    out
}

/// As a capability writes an entity's name, by the rule of `catalog::Capability::method_name`.
pub fn entity_prefix(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    let mut lower = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && lower {
            out.push('_');
        }
        lower = c.is_ascii_lowercase() || c.is_ascii_digit();
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// Whether a property of this name can be found by a path into an answer.
pub fn is_reachable(name: &str) -> bool {
    !name.is_empty() && name.len() <= 100 && !name.contains(['.', '[', ']']) && !name.contains(char::is_control)
}

/// Whether a parameter of this name can be sent in a query.
pub fn is_sendable(name: &str) -> bool {
    !name.is_empty() && name.len() <= 100 && name.chars().all(|c| !c.is_control() && !" &=#?{}".contains(c))
}

/// A slot's name: as it is where it can be, else made of its words.
pub fn name(text: &str) -> String {
    let fits = text.len() <= LONGEST
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        // `_` alone is the row of a program.
        && text.bytes().any(|b| b.is_ascii_alphanumeric());
    let mut out = if fits { text.to_owned() } else { snake(text) };
    out.truncate(LONGEST);
    if out.is_empty() {
        out = "value".to_owned();
    }
    if out.starts_with(|c: char| c.is_ascii_digit()) {
        out.insert_str(0, "n_");
    }
    if is_symbol(&out) {
        out.insert(1, '_');
    }
    out
}

/// `e1`, `m2`, `p3`, `r4`, `s5` are symbols of a session.
fn is_symbol(text: &str) -> bool {
    text.len() > 1 && text.starts_with(['e', 'm', 'p', 'r', 's']) && text.bytes().skip(1).all(|b| b.is_ascii_digit())
}

/// A name after a dot: not a word of the language.
pub fn method(text: &str) -> String {
    let name = name(text);
    if POSTFIXES.contains(&name.as_str()) { format!("do_{name}") } else { name }
}

/// A relation's name: not a word of the language.
pub fn relation(text: &str) -> String {
    let name = name(text);
    if POSTFIXES.contains(&name.as_str()) { format!("{name}_rows") } else { name }
}

/// The name, or the name with the first number that is free; it is taken then.
pub fn unique(taken: &mut HashSet<String>, name: String) -> String {
    if taken.insert(name.clone()) {
        return name;
    }
    let free = (2..).map(|n| format!("{name}_{n}")).find(|candidate| !taken.contains(candidate));
    let free = free.unwrap_or(name);
    taken.insert(free.clone());
    free
}

/// `an open order` of OpenOrder.
pub fn a(name: &str) -> String {
    let words = words(name).join(" ");
    let article = if words.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
    format!("{article} {words}")
}

/// Whether a field of this name, in words, tells a reader most of what a row is.
pub fn is_telling(short: &str) -> bool {
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
    words.contains(&short)
}

pub fn singular(word: &str) -> String {
    let swap = |end: &str, with: &str| word.strip_suffix(end).map(|stem| format!("{stem}{with}"));
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
    let es = ["sses", "shes", "ches", "xes", "zzes", "uses"];
    let plain = word == "uses" || word.ends_with("auses") || word.ends_with("ouses");
    if es.iter().any(|end| word.ends_with(end)) && !plain {
        return swap("es", "").unwrap_or_default();
    }
    swap("ies", "y").or_else(|| swap("s", "")).unwrap_or_else(|| word.to_owned())
}

/// Whether it names several of something.
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

/// The first sentence, without markup, at most so long.
pub fn sentence(text: &str, most: usize) -> String {
    let mut plain = String::new();
    let mut tag = false;
    for c in text.trim_start().chars().take(600) {
        match c {
            '<' => tag = true,
            '>' if tag => tag = false,
            '`' | '*' | '#' | '\\' => {}
            '\n' if !tag && plain.trim_end().ends_with(['.', ':']) => break,
            c if tag => {
                let _ = c;
            }
            c if c.is_control() || c.is_whitespace() => plain.push(' '),
            c => plain.push(c),
        }
    }
    let plain = without_links(&plain);
    let line = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = line.match_indices(". ").map(|(at, _)| at).find(|at| !abbreviated(&line[..*at])).unwrap_or(line.len());
    let line = line[..end].trim_end_matches(['.', ':', ';', ',']).trim();
    if line.chars().count() <= most {
        return line.to_owned();
    }
    let cut: String = line.chars().take(most).collect();
    let cut = cut.rsplit_once(' ').map_or(cut.as_str(), |(whole, _)| whole);
    format!("{}…", cut.trim_end_matches(['.', ':', ';', ',', '(']))
}

fn abbreviated(before: &str) -> bool {
    ["e.g", "i.e", "etc", "vs"].iter().any(|short| before.ends_with(short))
}

/// `[words](address)` is its words.
fn without_links(text: &str) -> String {
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
    fn words_of_every_way_to_write_them() {
        assert_eq!(words("issues/list-for-repo"), ["issues", "list", "for", "repo"]);
        assert_eq!(words("getHTTPRouteV2"), ["get", "http", "route", "v2"]);
        assert_eq!(words("OAuth2Token"), ["o", "auth2", "token"]);
        assert_eq!(words("!!"), Vec::<String>::new());
    }

    #[test]
    fn names_are_names() {
        assert_eq!(name("created_at"), "created_at");
        assert_eq!(name("page[size]"), "page_size");
        assert_eq!(name("3d"), "n_3d");
        assert_eq!(name("p1"), "p_1");
        assert_eq!(name("@"), "value");
        assert_eq!(name(&"x".repeat(1_000_000)).len(), LONGEST);
        assert_eq!(method("limit"), "do_limit");
    }

    #[test]
    fn one_and_several() {
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
    fn a_description_is_its_first_sentence() {
        assert_eq!(sentence("Lists *all* [pets](https://x). More.", 80), "Lists all pets");
        assert_eq!(sentence("<p>One, e.g. two. Three</p>", 80), "One, e.g. two");
        assert_eq!(sentence(&"word ".repeat(50), 20), "word word word word…");
    }
}
