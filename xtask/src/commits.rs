//! `cargo xtask commits`: checks that the subject of each commit is an imperative of at most 72 characters.
//! Invariant: only commits that are not in origin/main are checked, without merges.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

const LONGEST_SUBJECT: usize = 72;

/// The imperatives that end in `-ed` or `-ing` like a participle.
const IMPERATIVES: &[&str] = &[
    "bring", "cling", "embed", "exceed", "feed", "fling", "heed", "need", "ping", "proceed", "ring", "seed", "shed",
    "shred", "sling", "speed", "spring", "string", "succeed", "swing", "wed", "weed", "wring",
];

pub struct Report {
    pub findings: Vec<String>,
    pub summary: String,
}

/// Checks the commits in `origin/main..HEAD` of the repository at `root`.
pub fn check_unpublished(root: &Path) -> Result<Report> {
    let output = Command::new("git")
        .args(["log", "--no-merges", "--format=%h %s", "origin/main..HEAD"])
        .current_dir(root)
        .output()
        .context("git cannot be started")?;
    ensure!(output.status.success(), "git log failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    let log = String::from_utf8_lossy(&output.stdout);
    let mut findings = Vec::new();
    for line in log.lines() {
        let (commit, subject) = line.split_once(' ').unwrap_or((line, ""));
        findings.extend(mistakes(subject).into_iter().map(|mistake| format!("{commit} `{subject}`: {mistake}")));
    }
    let summary = format!("commits: {} checked, {} findings", log.lines().count(), findings.len());
    Ok(Report { findings, summary })
}

/// Checks the message that git is about to store.
pub fn check_message(file: &Path) -> Result<Report> {
    let text = std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let subject = text.lines().find(|line| !line.starts_with('#') && !line.trim().is_empty()).unwrap_or_default();
    let findings: Vec<String> = match subject.split_whitespace().next() {
        // Git writes these subjects. Commits with the first two are squashed before they are published.
        Some("fixup!" | "squash!" | "Merge" | "Revert") => Vec::new(),
        _ => mistakes(subject).into_iter().map(|mistake| format!("`{subject}`: {mistake}")).collect(),
    };
    Ok(Report { findings, summary: "commits: the subject was checked".to_owned() })
}

/// Returns the mistakes of a subject.
fn mistakes(subject: &str) -> Vec<String> {
    let mut mistakes = Vec::new();
    let length = subject.chars().count();
    if length > LONGEST_SUBJECT {
        mistakes.push(format!("the subject has {length} characters; write at most {LONGEST_SUBJECT}"));
    }
    let word = subject.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
    if word.is_empty() {
        mistakes.push("the subject does not begin with a word; begin with an imperative".to_owned());
    } else if (word.ends_with("ed") || word.ends_with("ing")) && !IMPERATIVES.contains(&word.as_str()) {
        mistakes.push(format!("`{word}` is no imperative; write `Add`, not `Added` or `Adding`"));
    }
    mistakes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imperatives_pass() {
        let longest = format!("Add {}", "x".repeat(68));
        for subject in ["Add a rule", "Embed the guest", "Docs: mend a link", "Bring back the test", &longest] {
            assert!(mistakes(subject).is_empty(), "{subject}");
        }
    }

    #[test]
    fn participles_and_long_subjects_are_found() {
        let long = format!("Add {}", "x".repeat(69));
        for subject in ["Added a rule", "Adding a rule", "fixed: x", "", "(x)", &long] {
            assert_eq!(mistakes(subject).len(), 1, "{subject}");
        }
    }

    #[test]
    fn comments_of_a_message_are_skipped() {
        let file = std::env::temp_dir().join(format!("xtask-message-{}", std::process::id()));
        std::fs::write(&file, "# Please enter\n\nAdded x\n\nBody.\n").unwrap();
        assert_eq!(check_message(&file).unwrap().findings.len(), 1);
        std::fs::write(&file, "fixup! Added x\n").unwrap();
        assert!(check_message(&file).unwrap().findings.is_empty());
        std::fs::remove_file(&file).unwrap();
    }
}
