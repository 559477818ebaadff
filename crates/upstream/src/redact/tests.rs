//! Tests of the removal of secrets: one case for each form, nested forms, and a property over random forms and chunks.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::body::BodyDecoder;

fn redacted(secret: &str, body: &str) -> String {
    let mut text = body.to_owned();
    Redactor::new([secret]).redact_text(&mut text);
    text
}

#[test]
fn every_echo_in_headers_and_body_is_replaced() {
    let body = br#"{"a": "bad Bearer sk-12345678", "b": "sk-12345678sk-12345678", "c": "q\"uote1"}"#.to_vec();
    let headers = vec![
        ("x-echo".to_owned(), "Bearer sk-12345678".to_owned()),
        ("sk-12345678".to_owned(), "in a name".to_owned()),
        ("x-json".to_owned(), r"\u0073k-12345678".to_owned()),
    ];
    let mut answer = Response { status: 500, headers, body };
    Redactor::new(["sk-12345678", "q\"uote1", "abc", ""]).redact(&mut answer);
    let body = String::from_utf8(answer.body).unwrap();
    assert_eq!(body, r#"{"a": "bad Bearer [secret]", "b": "[secret][secret]", "c": "[secret]"}"#);
    let headers: Vec<_> = answer.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(headers, [("x-echo", "Bearer [secret]"), ("x-json", "[secret]")]);
}

#[test]
fn an_echo_in_a_url_or_with_escaped_slashes_is_replaced() {
    let secret = "ab/cd+ef== gh";
    let link = "https://a.example/?key=ab%2Fcd%2Bef%3D%3D+gh&next=ab%2fcd%2bef%3d%3d%20gh";
    let body = format!(r#"{{"self": "{link}", "key": "ab\/cd+ef== gh", "raw": "{secret}"}}"#);
    let clean = "https://a.example/?key=[secret]&next=[secret]";
    assert_eq!(redacted(secret, &body), format!(r#"{{"self": "{clean}", "key": "[secret]", "raw": "[secret]"}}"#));
}

#[test]
fn each_form_of_one_secret_is_replaced() {
    let secret = "s3cr3t/é+key";
    for (form, clean) in [
        (r#"{"k": "\u00733cr3t\/\u00e9\u002bkey"}"#, r#"{"k": "[secret]"}"#),
        (r"x = '\x733cr3t/\u{e9}+key'", "x = '[secret]'"),
        ("?k=%733cr3t%2f%C3%A9%2Bkey&n=1", "?k=[secret]&n=1"),
        ("<p>&#115;3cr3t&sol;&#xE9;&plus;key</p>", "<p>[secret]</p>"),
        ("<p>&#0000115;3cr3t&#47/&#233+key".trim_end_matches("key"), "<p>&#0000115;3cr3t&#47/&#233+"),
        ("hex: 7333637233742fc3a92b6b6579.", "hex: [secret]."),
        ("hex: 7333637233742FC3A92B6B6579.", "hex: [secret]."),
        // These forms are JSON in JSON, a URL in JSON, HTML in JSON, and a URL in HTML in JSON.
        (r#"{"j": "{\"k\": \"\\u00733cr3t/\\u00e9+key\"}"}"#, r#"{"j": "{\"k\": \"[secret]\"}"}"#),
        (r#"{"u": "\/?k=%733cr3t\u00252F%C3%A9%2Bkey"}"#, r#"{"u": "\/?k=[secret]"}"#),
        (r#"{"h": "<b title=\"&#115;3cr3t/\u00e9+key\">"}"#, r#"{"h": "<b title=\"[secret]\">"}"#),
        (r#"{"h": "<a href=\"?k=&#37;733cr3t&#x25;2F%C3%A9%2Bkey\">"}"#, r#"{"h": "<a href=\"?k=[secret]\">"}"#),
        // Encoded twice, as a proxy does with a URL that it gets as a parameter.
        ("?to=%252F%253Fk%253D%25733cr3t%252F%25C3%25A9%252Bkey", "?to=%252F%253Fk%253D[secret]"),
    ] {
        assert_eq!(redacted(secret, form), clean, "{form}");
    }
}

#[test]
fn base64_is_recognised_at_every_offset_in_both_alphabets() {
    let secret = "s3cr3t~?>key";
    for prefix in ["", "a", "ab", "abc", "user:"] {
        for suffix in ["", "z", "zz", "\n"] {
            let plain = format!("{prefix}{secret}{suffix}");
            for encoded in [STANDARD.encode(&plain), URL_SAFE.encode(&plain)] {
                let clean = redacted(secret, &format!("{{\"e\": \"{encoded}\"}}"));
                let left = clean.replace("[secret]", "").len() - "{\"e\": \"\"}".len();
                assert!(clean.contains("[secret]"), "{prefix} {suffix}: {clean}");
                let allowed = prefix.len() * 8 / 6 + suffix.len() * 8 / 6 + 4;
                assert!(left <= allowed, "{prefix} {suffix}: {clean}");
            }
        }
    }
    let long = STANDARD.encode("x".repeat(30) + secret + &"y".repeat(30));
    for line_break in ["\n", "\r\n", "\n    "] {
        for width in 1..40 {
            let lines: Vec<&str> = long.as_bytes().chunks(width).map(|line| str::from_utf8(line).unwrap()).collect();
            let clean = redacted(secret, &lines.join(line_break));
            assert!(clean.contains("[secret]"), "{width}: {clean}");
        }
    }
}

#[test]
fn ordinary_answers_stay_as_they_are() {
    let body = r#"{"a": "line\nbreak \"quoted\" 100% &amp; %41 \u00e9 \ud83d\ude00 \ud83d \q", "b": "\\"}"#;
    assert_eq!(redacted("sk-12345678", body), body);
    for text in ["", "\\", "%", "%4", "&", "&#", "&#x;", "&#99999999999;", "\\u{", "\\u12", "\n", "a\n"] {
        assert_eq!(redacted("sk-12345678", text), text);
    }
}

#[test]
fn hostile_bodies_take_linear_work() {
    // Each body makes every layer of decoding necessary, and a quadratic step would take minutes.
    let secret = "a".repeat(40);
    for unit in ["a", "\\\\", "%25", "&amp;", "\\u005c", "a\n", "\\u0025&amp;%5c", "&#0000000000000000000000000038;"] {
        let mut body = unit.repeat(1_000_000 / unit.len()).into_bytes();
        Redactor::new([secret.as_str(), "aaaaaa", "aaaaaaa"]).redact_bytes(&mut body);
        assert!(body.len() <= 1_000_000);
    }
}

/// How one text is written in another.
#[derive(Debug, Clone, Copy)]
enum Form {
    Json,
    Percent,
    Html,
}

/// Writes each character either as it is or as an escape, by the next bit of `choices`. Characters that the form cannot
/// contain are always escaped.
fn encode(form: Form, text: &str, choices: u64) -> String {
    let mut out = String::new();
    for (index, c) in text.chars().enumerate() {
        let (chosen, upper) = (choices >> (index % 61) & 1 == 1, choices >> ((index + 7) % 61) & 1 == 1);
        match form {
            Form::Json => {
                if chosen || matches!(c, '"' | '\\') || c.is_control() {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        out += &if upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") };
                    }
                } else {
                    out.push(c);
                }
            }
            Form::Percent => {
                if chosen || matches!(c, '%' | '+' | '&' | ' ') || !c.is_ascii() {
                    for byte in c.to_string().bytes() {
                        out += &if upper { format!("%{byte:02X}") } else { format!("%{byte:02x}") };
                    }
                } else {
                    out.push(c);
                }
            }
            Form::Html => {
                let code = u32::from(c);
                if chosen || c == '&' {
                    out += &if upper { format!("&#x{code:X};") } else { format!("&#{code:04};") };
                } else {
                    out.push(c);
                }
            }
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_secret_is_removed_in_any_form_and_in_any_chunks(
        secret in "[!-~é€😀]([ -~é€]{4,30})[!-~]",
        inner in 0..4_u8,
        forms in proptest::collection::vec((select(vec![Form::Json, Form::Percent, Form::Html]), any::<u64>()), 0..3),
        in_json in any::<Option<u64>>(),
        neighbour in "[a-z]{0,5}",
        chunks in proptest::collection::vec(1..40_usize, 1..20),
    ) {
        let (mut encoded, slack) = match inner {
            0 => (secret.clone(), 0),
            1 => (secret.bytes().map(|byte| format!("{byte:02x}")).collect(), 0),
            // The characters of base64 that contain bits of the neighbours stay, and so does the padding.
            2 => (STANDARD.encode(format!("{neighbour}{secret}{neighbour}")), 24),
            _ => (URL_SAFE.encode(format!("{secret}{neighbour}")), 24),
        };
        for (form, choices) in &forms {
            encoded = encode(*form, &encoded, *choices);
        }
        if let Some(choices) = in_json {
            encoded = encode(Form::Json, &encoded, choices);
        }
        let body = format!("{{\"before\": 1, \"e\": \"{encoded}\", \"after\": 2}}");
        // The body arrives in chunks of any size.
        let mut decoder = BodyDecoder::new(false, 1 << 20, 0);
        let (mut rest, mut sizes) = (body.as_bytes(), chunks.iter().cycle());
        while !rest.is_empty() {
            let (chunk, later) = rest.split_at(rest.len().min(*sizes.next().unwrap()));
            decoder.push(chunk).unwrap();
            rest = later;
        }
        let mut arrived = decoder.finish().unwrap();
        Redactor::new([secret.as_str()]).redact_bytes(&mut arrived);
        let clean = String::from_utf8(arrived).unwrap();
        prop_assert!(clean.contains("[secret]"), "{} in {}", secret, body);
        if slack == 0 {
            // Nothing is left of the encoded secret.
            prop_assert!(clean.len() <= body.len() - encoded.len() + "[secret]".len(), "{} gives {}", body, clean);
        }
    }
}
