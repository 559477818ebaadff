//! Reads the list `allow` of the table `[licenses]` from deny.toml.
//! Invariant: a missing or empty list is an error, because every licence would be refused.

use anyhow::Context;

/// Returns the allowed licences.
pub fn allowed(text: &str) -> anyhow::Result<Vec<String>> {
    let array = array(text).context("no `allow = [...]` under [licenses]")?;
    let list = strings(&array);
    anyhow::ensure!(!list.is_empty(), "`allow` under [licenses] is empty");
    Ok(list)
}

/// Returns the text between the brackets of the list, without comments.
fn array(text: &str) -> Option<String> {
    let mut lines = text.lines().map(uncomment).skip_while(|line| line.trim() != "[licenses]").skip(1);
    let first = lines.by_ref().take_while(|line| !line.trim_start().starts_with('[')).find_map(opening)?;
    let mut inside = String::new();
    for line in std::iter::once(first).chain(lines) {
        match line.split_once(']') {
            Some((last, _)) => return Some(inside + last),
            None => inside = inside + line + "\n",
        }
    }
    None
}

fn opening(line: &str) -> Option<&str> {
    let value = line.trim_start().strip_prefix("allow")?.trim_start().strip_prefix('=')?;
    value.trim_start().strip_prefix('[')
}

/// Returns the line without its comment. A licence id contains no `#`, so the first `#` begins the comment.
fn uncomment(line: &str) -> &str {
    line.split('#').next().unwrap_or(line)
}

fn strings(array: &str) -> Vec<String> {
    array.split('"').skip(1).step_by(2).map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read_with_comments_and_lines() {
        let text = "[bans]\nallow = [\"crate\"]\n[licenses] # ours\nunused-allowed-license = \"allow\"\nallow = [\n  \
                    \"MIT\", # \"GPL\"\n  # \"AGPL\",\n  \"Apache-2.0 WITH LLVM-exception\",\n]\n[sources]\n";
        assert_eq!(allowed(text).unwrap(), ["MIT", "Apache-2.0 WITH LLVM-exception"]);
        assert_eq!(allowed("[licenses]\nallow=[\"MIT\", \"ISC\"]").unwrap(), ["MIT", "ISC"]);
    }

    #[test]
    fn a_missing_list_is_an_error() {
        for text in ["", "[licenses]\nallow = []", "[licenses]\n[bans]\nallow = [\"x\"]", "[licenses]\nallow = [\"x\""]
        {
            assert!(allowed(text).is_err(), "{text}");
        }
    }
}
