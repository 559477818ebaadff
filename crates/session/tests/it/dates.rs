//! Dates counted from now, compared with arithmetic that cannot overflow.
//! Invariant: an offset is exact or refused; nothing wraps and nothing panics.

use base::{Limits, Timestamp};
use lang::codes;
use session::compile_stages;

use crate::golden_scopes;

/// 0001-01-01 and 10000-01-01, in milliseconds.
const DATES: std::ops::Range<i128> = -62_135_596_800_000..253_402_300_800_000;

#[test]
fn an_offset_is_exact_or_refused() {
    let attributes = std::collections::BTreeMap::from([("catalog".to_owned(), "tracker".to_owned())]);
    let scope = golden_scopes::scope(&testkit::golden::Case { attributes, ..Default::default() });
    let now = i128::from(scope.now.unwrap().0).div_euclid(1000) * 1000;
    let units: [(&str, i128); 6] =
        [("s", 1000), ("min", 60_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000), ("w", 604_800_000)];
    let mut seed = 11u64;
    let mut next = |below: u64| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 16) % below
    };
    let (mut right, mut refused) = (0, 0);
    for _ in 0..4_000 {
        // As many digits as a 64-bit number has, and more.
        let digits = 1 + next(24) as usize;
        let number: String = (0..digits).map(|_| char::from(b'0' + next(10) as u8)).collect();
        let (unit, milliseconds) = units[next(6) as usize];
        let (sign, factor) = if next(2) == 0 { ("-", -1) } else { ("+", 1) };
        let program = format!("Ticket{{since=now{sign}{number}{unit}}}");
        let stages = compile_stages(&scope, &program, &Limits::default());
        let moment = now + factor * number.parse::<i128>().unwrap() * milliseconds;
        if DATES.contains(&moment) {
            let text = Timestamp(i64::try_from(moment).unwrap()).to_string();
            let wanted = format!("{}Z", &text[..19]);
            let outline = lang::check::outline(stages.checked.as_ref().unwrap_or_else(|| panic!("{program}")));
            assert!(outline.contains(&wanted), "{program}: {wanted}\n{outline}");
            right += 1;
        } else {
            assert!(stages.checked.is_none(), "{program}");
            assert!(stages.diagnostics.iter().all(|d| d.code == codes::WRONG_TYPE), "{program}");
            refused += 1;
        }
    }
    assert!(right > 500 && refused > 500, "{right} right, {refused} refused");
}
