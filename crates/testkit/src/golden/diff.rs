//! Renders the difference of two texts line by line, for the message of a failed test.
//! Invariant: every line that differs is shown. Only lines that both texts share may be replaced by `…`.

/// The number of equal lines that are shown before and after a difference.
const CONTEXT_LINES: usize = 2;
/// The largest number of pairs of lines that are compared, because the comparison needs memory for each pair. For larger texts, the part
/// between the first and the last difference is shown as replaced as a whole.
const MAX_PAIRS: usize = 4_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiffLine<'a> {
    Same(&'a str),
    Expected(&'a str),
    Actual(&'a str),
}

/// Returns the number of the first line of `expected` that differs (from 0), and the text that shows all differences.
pub fn lines(expected: &str, actual: &str) -> (usize, String) {
    let lines = align(&split(expected), &split(actual));
    let first = lines.iter().position(|line| !matches!(line, DiffLine::Same(_))).unwrap_or(0);
    (first, show(&lines))
}

fn split(text: &str) -> Vec<&str> {
    if text.is_empty() { Vec::new() } else { text.split('\n').collect() }
}

fn show(lines: &[DiffLine<'_>]) -> String {
    let changed: Vec<usize> =
        lines.iter().enumerate().filter(|(_, line)| !matches!(line, DiffLine::Same(_))).map(|(at, _)| at).collect();
    let is_shown = |at: usize| changed.iter().any(|change| change.abs_diff(at) <= CONTEXT_LINES);
    let mut out: Vec<String> = Vec::new();
    let mut skipped = false;
    for (at, line) in lines.iter().enumerate() {
        if !is_shown(at) {
            skipped = true;
            continue;
        }
        if std::mem::take(&mut skipped) {
            out.push("    …".to_owned());
        }
        out.push(match line {
            DiffLine::Same(text) => format!("    {text}"),
            DiffLine::Expected(text) => format!("  - {text}"),
            DiffLine::Actual(text) => format!("  + {text}"),
        });
    }
    out.join("\n")
}

fn align<'a>(expected: &[&'a str], actual: &[&'a str]) -> Vec<DiffLine<'a>> {
    let head = expected.iter().zip(actual).take_while(|(a, b)| a == b).count();
    let expected_rest = &expected[head..];
    let actual_rest = &actual[head..];
    let tail = expected_rest.iter().rev().zip(actual_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let expected_middle = &expected_rest[..expected_rest.len() - tail];
    let actual_middle = &actual_rest[..actual_rest.len() - tail];
    let mut lines: Vec<DiffLine<'a>> = expected[..head].iter().map(|text| DiffLine::Same(text)).collect();
    lines.extend(align_middle(expected_middle, actual_middle));
    lines.extend(expected_rest[expected_middle.len()..].iter().map(|text| DiffLine::Same(text)));
    lines
}

/// Aligns two texts by their longest common subsequence of lines.
fn align_middle<'a>(expected: &[&'a str], actual: &[&'a str]) -> Vec<DiffLine<'a>> {
    if expected.len().saturating_mul(actual.len()) > MAX_PAIRS {
        let removed = expected.iter().map(|text| DiffLine::Expected(text));
        return removed.chain(actual.iter().map(|text| DiffLine::Actual(text))).collect();
    }
    let width = actual.len() + 1;
    // `common[i * width + j]` is the length of the longest common subsequence of `expected[i..]` and `actual[j..]`.
    let mut common = vec![0u32; (expected.len() + 1) * width];
    for (i, left) in expected.iter().enumerate().rev() {
        for (j, right) in actual.iter().enumerate().rev() {
            common[i * width + j] = if left == right {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < expected.len() || j < actual.len() {
        let left = expected.get(i);
        let right = actual.get(j);
        match (left, right) {
            (Some(left), Some(right)) if left == right => {
                lines.push(DiffLine::Same(left));
                (i, j) = (i + 1, j + 1);
            }
            (Some(left), _) if right.is_none() || common[(i + 1) * width + j] >= common[i * width + j + 1] => {
                lines.push(DiffLine::Expected(left));
                i += 1;
            }
            (_, right) => {
                lines.extend(right.map(|text| DiffLine::Actual(text)));
                j += 1;
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_differences_and_their_neighbours_are_shown() {
        let (first, shown) = lines("a\nb\nc\nd\ne\nf\ng\nh", "a\nb\nc\nd\nE\nf\ng\nh\ni");
        assert_eq!(first, 4);
        assert_eq!(shown, "    …\n    c\n    d\n  - e\n  + E\n    f\n    g\n    h\n  + i");
    }

    #[test]
    fn texts_of_any_shape_align() {
        assert_eq!(lines("", "x"), (0, "  + x".to_owned()));
        assert_eq!(lines("x", ""), (0, "  - x".to_owned()));
        assert_eq!(lines("a\nb\na", "a\na"), (1, "    a\n  - b\n    a".to_owned()));
        assert_eq!(lines("a\na", "a\nb\na").1, "    a\n  + b\n    a");
        let (long, other) = ("x\n".repeat(3000), "y\n".repeat(3000));
        assert_eq!(lines(&long, &other).1.lines().count(), 6001, "the last, empty line is shared");
    }
}
