//! Two texts as a picture of their differing lines.
//! Invariant: every line of both texts is either shown or stands in a run that both share.

/// Lines around a difference that are shown with it.
const CONTEXT: usize = 2;
/// Above this many line pairs, the middle is shown as wholly replaced.
const MAX_PAIRS: usize = 4_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line<'a> {
    Same(&'a str),
    Expected(&'a str),
    Found(&'a str),
}

/// Where the first difference is (in lines of `expected`, from 0), and the picture.
pub fn lines(expected: &str, found: &str) -> (usize, String) {
    let lines = align(&split(expected), &split(found));
    let first = lines.iter().position(|line| !matches!(line, Line::Same(_))).unwrap_or(0);
    (first, picture(&lines))
}

fn split(text: &str) -> Vec<&str> {
    if text.is_empty() { Vec::new() } else { text.split('\n').collect() }
}

fn picture(lines: &[Line<'_>]) -> String {
    let changed: Vec<usize> =
        lines.iter().enumerate().filter(|(_, line)| !matches!(line, Line::Same(_))).map(|(at, _)| at).collect();
    let shown = |at: usize| changed.iter().any(|change| change.abs_diff(at) <= CONTEXT);
    let mut out: Vec<String> = Vec::new();
    let mut skipped = false;
    for (at, line) in lines.iter().enumerate() {
        if !shown(at) {
            skipped = true;
            continue;
        }
        if std::mem::take(&mut skipped) {
            out.push("    …".to_owned());
        }
        out.push(match line {
            Line::Same(text) => format!("    {text}"),
            Line::Expected(text) => format!("  - {text}"),
            Line::Found(text) => format!("  + {text}"),
        });
    }
    out.join("\n")
}

fn align<'a>(expected: &[&'a str], found: &[&'a str]) -> Vec<Line<'a>> {
    let head = expected.iter().zip(found).take_while(|(a, b)| a == b).count();
    let (expected_rest, found_rest) = (&expected[head..], &found[head..]);
    let tail = expected_rest.iter().rev().zip(found_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let expected_middle = &expected_rest[..expected_rest.len() - tail];
    let found_middle = &found_rest[..found_rest.len() - tail];
    let mut lines: Vec<Line<'a>> = expected[..head].iter().map(|text| Line::Same(text)).collect();
    lines.extend(align_middle(expected_middle, found_middle));
    lines.extend(expected_rest[expected_middle.len()..].iter().map(|text| Line::Same(text)));
    lines
}

/// Longest common subsequence.
fn align_middle<'a>(expected: &[&'a str], found: &[&'a str]) -> Vec<Line<'a>> {
    if expected.len().saturating_mul(found.len()) > MAX_PAIRS {
        let removed = expected.iter().map(|text| Line::Expected(text));
        return removed.chain(found.iter().map(|text| Line::Found(text))).collect();
    }
    let width = found.len() + 1;
    // common[i * width + j]: how many lines the rests from i and from j share.
    let mut common = vec![0u32; (expected.len() + 1) * width];
    for (i, left) in expected.iter().enumerate().rev() {
        for (j, right) in found.iter().enumerate().rev() {
            common[i * width + j] = if left == right {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < expected.len() || j < found.len() {
        let (left, right) = (expected.get(i), found.get(j));
        match (left, right) {
            (Some(left), Some(right)) if left == right => {
                lines.push(Line::Same(left));
                (i, j) = (i + 1, j + 1);
            }
            (Some(left), _) if right.is_none() || common[(i + 1) * width + j] >= common[i * width + j + 1] => {
                lines.push(Line::Expected(left));
                i += 1;
            }
            (_, right) => {
                lines.extend(right.map(|text| Line::Found(text)));
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
    fn only_what_differs_and_its_neighbours_are_shown() {
        let (at, picture) = lines("a\nb\nc\nd\ne\nf\ng\nh", "a\nb\nc\nd\nE\nf\ng\nh\ni");
        assert_eq!(at, 4);
        assert_eq!(picture, "    …\n    c\n    d\n  - e\n  + E\n    f\n    g\n    h\n  + i");
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
