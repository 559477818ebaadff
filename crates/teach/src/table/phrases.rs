//! The phrases that a row's meaning is put together from.
//! Invariant: a phrase that says nothing leaves nothing behind, no separator either.

use super::kinds::symbol;

/// A fragment of a meaning, if there is anything to say.
pub fn say(out: &mut String, write: impl FnOnce(&mut String)) {
    between(out, " · ", 0, write);
}

/// The next of a list that begins at `from`.
pub fn next(out: &mut String, from: usize, write: impl FnOnce(&mut String)) {
    between(out, ", ", from, write);
}

fn between(out: &mut String, separator: &str, from: usize, write: impl FnOnce(&mut String)) {
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
pub fn more(out: &mut String, count: usize) {
    if count > 0 {
        out.push_str(&format!("{}… {count} more", if out.is_empty() { "" } else { ", " }));
    }
}

/// `→ [e4]`, `→ e4`
pub fn returns(out: &mut String, at: usize, many: bool) {
    out.push_str(if many { "→ [" } else { "→ " });
    symbol(out, 'e', at);
    out.push_str(if many { "]" } else { "" });
}

/// A description stays in its cell.
pub fn one_line(out: &mut String, text: &str) {
    for (at, word) in text.split_whitespace().enumerate() {
        out.push_str(if at == 0 { "" } else { " " });
        out.push_str(word);
    }
}

/// Whether a description is the name again: `a pull request` of `PullRequest`.
pub fn restates(about: &str, name: &str) -> bool {
    let letters = |text: &'_ str| -> Vec<char> {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let about = about.trim_end_matches('.');
    let bare = match about.split_once(char::is_whitespace) {
        Some((first, rest)) if matches!(first.to_lowercase().as_str(), "a" | "an" | "the") => rest,
        _ => about,
    };
    // why: most descriptions differ in length already.
    bare.len() <= 2 * name.len() && letters(bare) == letters(name)
}

#[cfg(test)]
mod tests {
    use super::restates;

    #[test]
    fn a_description_that_says_nothing() {
        for (about, name) in [("a pull request", "PullRequest"), ("An activity.", "Activity"), ("issue", "Issue")] {
            assert!(restates(about, name), "{about}");
        }
        for (about, name) in [("a unit of work", "Ticket"), ("An autolink reference", "Autolink"), ("", "Issue")] {
            assert!(!restates(about, name), "{about}");
        }
    }
}
