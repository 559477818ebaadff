//! `tokamak explain`: prints the documentation page of an error code.
//! Invariant: the binary contains every page of `docs/errors/` (a test compares the lists).

use serde_json::json;

use crate::failure::Failure;
use crate::output::Output;

macro_rules! pages {
    ($($code:literal)*) => {
        &[$(($code, include_str!(concat!("../../../../docs/errors/", $code, ".md")))),*]
    };
}

/// Each code with its page.
const PAGES: &[(&str, &str)] = pages![
    "E0101" "E0102" "E0103" "E0104" "E0105" "E0106" "E0107" "E0108" "E0109" "E0110" "E0111" "E0112"
    "E0113" "E0114" "E0201" "E0202" "E0203" "E0204" "E0205" "E0206" "E0207" "E0208" "E0209" "E0210"
    "E0211" "E0212" "E0301" "E0302" "E0303" "E0304" "E0305" "E0306" "E0307" "E0308" "E0309" "E0310"
    "E0311" "E0312" "E0313" "E0314" "E0315" "E0316" "E0317" "E0318" "E0319" "E0320" "E0321" "E0322"
    "E0501" "E0502" "E0503" "E0504" "E0505" "E0506" "E0507" "E0508" "E0601" "E0602" "E0603" "E0604"
];

pub fn run(code_text: &str, output: &Output) -> Result<(), Failure> {
    let code = canonical_code(code_text);
    let Some((code, page)) = PAGES.iter().find(|(known, _)| *known == code) else {
        let near = base::similar_names(&code, PAGES.iter().map(|(known, _)| *known));
        return Err(Failure::NoCode { code: code_text.to_owned(), near });
    };
    if output.json {
        output.value(&json!({"code": code, "page": page}));
    } else {
        output.line(page.trim_end());
    }
    Ok(())
}

/// Returns the full form of a code: `e204`, `204` and `E0204` are the same.
fn canonical_code(text: &str) -> String {
    let upper = text.trim().to_ascii_uppercase();
    let digits = upper.strip_prefix('E').unwrap_or(&upper);
    match digits.parse::<u16>() {
        Ok(number) => format!("E{number:04}"),
        Err(_) => upper,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_in_the_binary() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut codes: Vec<String> =
            files.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
        codes.sort();
        assert_eq!(codes, PAGES.iter().map(|(code, _)| (*code).to_owned()).collect::<Vec<_>>());
    }

    #[test]
    fn a_code_may_be_written_short() {
        assert_eq!(
            ["E0204", "e204", " 204 ", "0204", "x"].map(canonical_code),
            ["E0204", "E0204", "E0204", "E0204", "X"]
        );
    }
}
