//! The phrases that a row's meaning is put together from.
//! Invariant: a phrase that says nothing leaves nothing behind, no separator either.

use super::kinds::write_symbol;

/// A fragment of a meaning, if there is anything to say.
pub fn add_phrase(out: &mut String, write: impl FnOnce(&mut String)) {
    separated(out, " · ", 0, write);
}

/// What a row gives, which its arrow sets off from what stands before it.
pub fn add_result(out: &mut String, write: impl FnOnce(&mut String)) {
    separated(out, " ", 0, write);
}

/// The next of a list that begins at `from`.
pub fn add_item(out: &mut String, from: usize, write: impl FnOnce(&mut String)) {
    separated(out, ", ", from, write);
}

fn separated(out: &mut String, separator: &str, from: usize, write: impl FnOnce(&mut String)) {
    let before = out.len();
    if before > from {
        out.push_str(separator);
    }
    let start = out.len();
    write(out);
    if out.len() == start {
        out.truncate(before);
    }
}

/// `… 31 more`
pub fn count_omitted(out: &mut String, count: usize) {
    if count > 0 {
        out.push_str(&format!("{}… {count} more", if out.is_empty() { "" } else { ", " }));
    }
}

/// `→ [e4]`, `→ e4`
pub fn result_type(out: &mut String, at: usize, many: bool) {
    out.push_str(if many { "→ [" } else { "→ " });
    write_symbol(out, 'e', at);
    out.push_str(if many { "]" } else { "" });
}

/// A description stays in its cell.
pub fn one_line(out: &mut String, text: &str) {
    for (at, word) in text.split_whitespace().enumerate() {
        out.push_str(if at == 0 { "" } else { " " });
        out.push_str(word);
    }
}

/// Words that tell nothing of what is described.
const EMPTY: &[&str] = &[
    "a",
    "an",
    "and",
    "are",
    "as",
    "assigned",
    "associated",
    "by",
    "data",
    "details",
    "for",
    "from",
    "get",
    "gets",
    "in",
    "information",
    "is",
    "it",
    "its",
    "list",
    "lists",
    "object",
    "of",
    "on",
    "or",
    "reference",
    "related",
    "single",
    "that",
    "the",
    "this",
    "to",
    "which",
    "with",
];

/// Whether a description says nothing that these names do not: `a pull request` of `PullRequest`, `List issue comments` of
/// `IssueComment` where the row asks for an `issue_number`. One that was cut before it came to the point of what begins
/// with the name (`Issues are a great way to…`) says no more.
pub fn restates(about: &str, names: &[&str]) -> bool {
    let is_known = |word: &str| names.iter().any(|name| words(name).any(|own| alike(own, word)));
    let is_empty = |word: &&str| EMPTY.iter().any(|empty| empty.eq_ignore_ascii_case(word));
    let mut told = words(about).filter(|word| !is_empty(word)).peekable();
    let Some(first) = told.peek() else { return !about.is_empty() };
    (about.ends_with('…') && is_known(first)) || told.all(is_known)
}

/// What is done, without what it is done to where that is the entity itself: `Lock an issue`, `Set labels for an issue`.
pub fn without_object<'t>(about: &'t str, name: &str) -> &'t str {
    let is_known = |word: &str| words(name).any(|own| alike(own, word));
    let (mut end, mut named) = (about.len(), false);
    while let Some((before, last)) = about[..end].rsplit_once(char::is_whitespace) {
        let article = matches!(last, "a" | "an" | "the");
        if article && named {
            return match before.rsplit_once(char::is_whitespace) {
                None => before,
                Some((done, "of" | "for" | "from" | "in" | "into" | "on" | "to")) => done,
                // What stands between is not the verb alone.
                Some(_) => about,
            };
        }
        if article || !words(last).all(is_known) {
            break;
        }
        (end, named) = (before.len(), true);
    }
    about
}

/// `PullRequest`, `pull_request` and `Pull Requests` have the same, but for case.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| !c.is_alphanumeric());
        let mut lower = false;
        let ends = |c: char| {
            let hump = lower && c.is_uppercase();
            lower = c.is_lowercase();
            hump || !c.is_alphanumeric()
        };
        let (word, after) = rest.split_at(rest.find(ends).unwrap_or(rest.len()));
        rest = after;
        (!word.is_empty()).then_some(word)
    })
}

/// The same word in singular and plural, or in short: `repo`, `repositories`.
fn alike(one: &str, other: &str) -> bool {
    let stem = |word: &'_ str| match word.as_bytes() {
        [.., b'i', b'e', b's'] => word.len() - 3,
        [.., b's' | b'y'] => word.len() - 1,
        _ => word.len(),
    };
    let (one, other) = (&one[..stem(one)], &other[..stem(other)]);
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    let begins = long.get(..short.len()).is_some_and(|head| head.eq_ignore_ascii_case(short));
    begins && (short.len() == long.len() || short.len() > 3)
}

#[cfg(test)]
mod tests {
    use super::{restates, without_object};

    #[test]
    fn a_description_that_says_nothing() {
        let nothing = [
            ("a pull request", "PullRequest"),
            ("An activity.", "Activity"),
            ("issue", "Issue"),
            ("An autolink reference", "Autolink"),
            ("Configuration object of the webhook", "WebhookConfig"),
            ("Pull requests let you tell others about…", "PullRequest"),
        ];
        for (about, name) in nothing {
            assert!(restates(about, &[name]), "{about}");
        }
        let something = [
            ("a unit of work", "Ticket"),
            ("", "Issue"),
            ("Groups of members that…", "Team"),
            ("The status of a commit", "Status"),
            ("Legacy review comment", "ReviewComment"),
            ("Pull requests let you tell others", "PullRequest"),
        ];
        for (about, name) in something {
            assert!(!restates(about, &[name]), "{about}");
        }
    }

    #[test]
    fn what_is_done_to_the_entity_itself() {
        for (about, name, left) in [
            ("Lock an issue", "Issue", "Lock"),
            ("Remove all labels from an issue", "Issue", "Remove all labels"),
            ("Pin an issue comment", "IssueComment", "Pin"),
            ("Rename a branch", "BranchWithProtection", "Rename"),
            // The words would mean something else without their last ones.
            ("Delete commit signature protection", "BranchProtection", "Delete commit signature protection"),
            ("Remove a sub-issue", "Issue", "Remove a sub-issue"),
            ("Move what is under an issue", "Issue", "Move what is under an issue"),
            ("Remove dependency an issue is blocked by", "Issue", "Remove dependency an issue is blocked by"),
            ("issue", "Issue", "issue"),
            ("", "Issue", ""),
        ] {
            assert_eq!(without_object(about, name), left);
        }
    }

    #[test]
    fn a_list_that_its_slots_tell() {
        assert!(restates("List issue comments for a repository", &["IssueComment", "owner", "repo"]));
        assert!(restates("List repositories for a user", &["Repository", "username"]));
        assert!(!restates("List labels for issues in a milestone", &["Label", "milestone_number"]));
        assert!(!restates("List forks", &["Repository", "owner", "repo"]));
    }
}
