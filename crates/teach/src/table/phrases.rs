//! The phrases in the right cell of a row (its meaning), and the removal of descriptions that only repeat names.
//! Invariant: an empty phrase adds no separator.

use super::slot_types::write_symbol;

/// Adds a phrase to a meaning. If `write` writes nothing, no separator is added.
pub fn add_phrase(out: &mut String, write: impl FnOnce(&mut String)) {
    add_separated(out, " · ", 0, write);
}

/// Adds the result of a row. The result starts with an arrow, so a space is enough as a separator.
pub fn add_result(out: &mut String, write: impl FnOnce(&mut String)) {
    add_separated(out, " ", 0, write);
}

/// Adds an item to the comma-separated list that starts at the byte position `list_start`.
pub fn add_item(out: &mut String, list_start: usize, write: impl FnOnce(&mut String)) {
    add_separated(out, ", ", list_start, write);
}

fn add_separated(out: &mut String, separator: &str, list_start: usize, write: impl FnOnce(&mut String)) {
    let before = out.len();
    if before > list_start {
        out.push_str(separator);
    }
    let start = out.len();
    write(out);
    if out.len() == start {
        out.truncate(before);
    }
}

/// Adds the number of omitted items: `… 31 more`.
pub fn add_omitted_count(out: &mut String, count: usize) {
    if count > 0 {
        out.push_str(&format!("{}… {count} more", if out.is_empty() { "" } else { ", " }));
    }
}

/// Writes the result type of a table row: `→ [e4]` for many rows of an entity, `→ e4` for one row.
pub fn write_result_type(out: &mut String, entity_number: usize, many: bool) {
    out.push_str(if many { "→ [" } else { "→ " });
    write_symbol(out, 'e', entity_number);
    out.push_str(if many { "]" } else { "" });
}

/// Writes a text on one line. A line break or a tab would end the cell of the table.
pub fn write_one_line(out: &mut String, text: &str) {
    for (position, word) in text.split_whitespace().enumerate() {
        out.push_str(if position == 0 { "" } else { " " });
        out.push_str(word);
    }
}

/// Words that add no information to a description.
const EMPTY_WORDS: &[&str] = &[
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

/// Returns whether a description only repeats these names: `a pull request` for `PullRequest`, or `List issue comments` for
/// `IssueComment` in a row with an `issue_number`. A cut description that starts with the name (`Issues are a great way to…`)
/// counts as a repetition, because the informative part is missing.
pub fn restates(about: &str, names: &[&str]) -> bool {
    let is_known = |word: &str| names.iter().any(|name| name_words(name).any(|own| is_same_word(own, word)));
    let is_empty = |word: &&str| EMPTY_WORDS.iter().any(|empty| empty.eq_ignore_ascii_case(word));
    let mut words = name_words(about).filter(|word| !is_empty(word)).peekable();
    let Some(first) = words.peek() else { return !about.is_empty() };
    (about.ends_with('…') && is_known(first)) || words.all(is_known)
}

/// Returns the description of a call without its object, if the object is the entity of the call: `Lock` for `Lock an issue`,
/// `Set labels` for `Set labels for an issue`.
pub fn without_object<'t>(about: &'t str, name: &str) -> &'t str {
    let is_known = |word: &str| name_words(name).any(|own| is_same_word(own, word));
    let mut end = about.len();
    let mut names_entity = false;
    while let Some((before, last)) = about[..end].rsplit_once(char::is_whitespace) {
        let is_article = matches!(last, "a" | "an" | "the");
        if is_article && names_entity {
            return match before.rsplit_once(char::is_whitespace) {
                None => before,
                Some((action, "of" | "for" | "from" | "in" | "into" | "on" | "to")) => action,
                // Words between the verb and the object belong to the object, so nothing is removed: `Remove dependency an
                // issue is blocked by`.
                Some(_) => about,
            };
        }
        if is_article || !name_words(last).all(is_known) {
            break;
        }
        end = before.len();
        names_entity = true;
    }
    about
}

/// Returns the words of a name or a text. `PullRequest` and `pull_request` have the same two words, except for their case.
fn name_words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| !c.is_alphanumeric());
        let mut after_lower = false;
        let ends_word = |c: char| {
            let begins_next = after_lower && c.is_uppercase();
            after_lower = c.is_lowercase();
            begins_next || !c.is_alphanumeric()
        };
        let (word, after) = rest.split_at(rest.find(ends_word).unwrap_or(rest.len()));
        rest = after;
        (!word.is_empty()).then_some(word)
    })
}

/// Returns whether two words differ only in singular and plural, or one is a short form of the other: `repo`, `repositories`.
fn is_same_word(one: &str, other: &str) -> bool {
    let stem_length = |word: &'_ str| match word.as_bytes() {
        [.., b'i', b'e', b's'] => word.len() - 3,
        [.., b's' | b'y'] => word.len() - 1,
        _ => word.len(),
    };
    let one = &one[..stem_length(one)];
    let other = &other[..stem_length(other)];
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    let is_beginning = long.get(..short.len()).is_some_and(|head| head.eq_ignore_ascii_case(short));
    is_beginning && (short.len() == long.len() || short.len() > 3)
}

#[cfg(test)]
mod tests {
    use super::{restates, without_object};

    #[test]
    fn a_description_of_known_words_restates_the_name() {
        let restating = [
            ("a pull request", "PullRequest"),
            ("An activity.", "Activity"),
            ("issue", "Issue"),
            ("An autolink reference", "Autolink"),
            ("Configuration object of the webhook", "WebhookConfig"),
            ("Pull requests let you tell others about…", "PullRequest"),
        ];
        for (about, name) in restating {
            assert!(restates(about, &[name]), "{about}");
        }
        let saying_more = [
            ("a unit of work", "Ticket"),
            ("", "Issue"),
            ("Groups of members that…", "Team"),
            ("The status of a commit", "Status"),
            ("Legacy review comment", "ReviewComment"),
            ("Pull requests let you tell others", "PullRequest"),
        ];
        for (about, name) in saying_more {
            assert!(!restates(about, &[name]), "{about}");
        }
    }

    #[test]
    fn an_object_that_is_the_entity_is_left_out() {
        for (about, name, left) in [
            ("Lock an issue", "Issue", "Lock"),
            ("Remove all labels from an issue", "Issue", "Remove all labels"),
            ("Pin an issue comment", "IssueComment", "Pin"),
            ("Rename a branch", "BranchWithProtection", "Rename"),
            // Without their last words, these descriptions would have another meaning.
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
    fn a_list_description_that_repeats_its_slots_restates_them() {
        assert!(restates("List issue comments for a repository", &["IssueComment", "owner", "repo"]));
        assert!(restates("List repositories for a user", &["Repository", "username"]));
        assert!(!restates("List labels for issues in a milestone", &["Label", "milestone_number"]));
        assert!(!restates("List forks", &["Repository", "owner", "repo"]));
    }
}
