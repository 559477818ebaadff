//! How calls are signed: one of the specification's security schemes, as a catalog writes it.
//! Invariant: a secret is only ever named; a scheme that no catalog can carry is said and left out.

use std::collections::BTreeMap;

use base::Origin;
use serde_json::Value;

use crate::draft::Auth;
use crate::names;
use crate::spec::{In, Operation, Spec};

#[derive(Debug, Default)]
pub struct Signed {
    pub auth: Option<Auth>,
    /// Some operations are open to anyone.
    pub anonymous: bool,
    pub guesses: Vec<String>,
}

pub fn signed(spec: &Spec, operations: &[Operation<'_>], id: &str) -> Signed {
    let path: &[&str] = if spec.old { &["securityDefinitions"] } else { &["components", "securitySchemes"] };
    let prefix = names::snake(id).to_ascii_uppercase();
    let Some(schemes) = spec.map(path).filter(|schemes| !schemes.is_empty()) else {
        return unsigned(operations, &prefix);
    };
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    let common = spec.root().get("security");
    let mut open = 0;
    for operation in operations {
        let needs = operation.security.or(common).and_then(Value::as_array);
        let needs = needs.map(Vec::as_slice).unwrap_or_default();
        open += usize::from(needs.is_empty() || needs.iter().any(|one| one.as_object().is_some_and(|o| o.is_empty())));
        for name in needs.iter().filter_map(Value::as_object).flat_map(|one| one.keys()) {
            *count.entry(name).or_default() += 1;
        }
    }
    // Schemes that nothing names are still how the API is signed.
    let unnamed = count.is_empty();
    let mut usable: Vec<(usize, usize, Auth, String)> = Vec::new();
    let mut unusable: Vec<&str> = Vec::new();
    for (name, scheme) in schemes.iter().take(40) {
        let uses = count.get(name.as_str()).copied().unwrap_or(0);
        if uses == 0 && !unnamed {
            continue;
        }
        match read(spec.follow(scheme), &prefix) {
            Some((rank, auth)) => usable.push((uses, rank, auth, name.clone())),
            None => unusable.push(name),
        }
    }
    usable.sort_by_key(|(uses, rank, ..)| (std::cmp::Reverse(*uses), *rank));
    let mut guesses = Vec::new();
    let others: Vec<&str> = usable.iter().skip(1).map(|(.., name)| name.as_str()).chain(unusable).collect();
    if !others.is_empty() && !usable.is_empty() {
        guesses.push(format!("auth is the scheme `{}`; the specification also has {}", usable[0].3, listed(&others)));
    } else if !others.is_empty() {
        guesses.push(format!("no catalog can carry the auth of {}", listed(&others)));
    }
    let auth = usable.into_iter().next().map(|(_, _, auth, _)| auth);
    let anonymous = auth.is_some() && !unnamed && open > 0;
    Signed { auth, anonymous, guesses }
}

/// Where no scheme is said, a key that most operations take as a parameter is one.
fn unsigned(operations: &[Operation<'_>], prefix: &str) -> Signed {
    let keys = [
        "api_key",
        "apikey",
        "x_api_key",
        "app_key",
        "api_token",
        "access_key",
        "appid",
        "auth_key",
        "subscription_key",
    ];
    let mut count: BTreeMap<(bool, &str), usize> = BTreeMap::new();
    for param in operations.iter().flat_map(|op| &op.params) {
        let key = keys.contains(&names::snake(param.name).as_str()) && param.required;
        if key && matches!(param.place, In::Query | In::Header) && !reserved(param.name) {
            *count.entry((param.place == In::Header, param.name)).or_default() += 1;
        }
    }
    let most = count.into_iter().max_by_key(|(_, n)| *n).filter(|(_, n)| n * 2 > operations.len());
    let scheme = most.map(|((header, name), _)| {
        let place = if header { "header" } else { "query" };
        (serde_json::json!({"type": "apiKey", "in": place, "name": name}), name)
    });
    match scheme.and_then(|(scheme, name)| Some((read(&scheme, prefix)?.1, name))) {
        Some((auth, name)) => {
            let guesses =
                vec![format!("the parameter `{name}`, which most operations need, is taken for the credential")];
            Signed { auth: Some(auth), guesses, ..Signed::default() }
        }
        None => {
            let says = "the specification has no security scheme: add `auth` if the API wants a credential";
            let guesses = if operations.is_empty() { Vec::new() } else { vec![says.to_owned()] };
            Signed { guesses, ..Signed::default() }
        }
    }
}

fn listed(names: &[&str]) -> String {
    let shown: Vec<String> =
        names.iter().take(4).map(|name| format!("`{}`", name.chars().take(40).collect::<String>())).collect();
    shown.join(", ")
}

/// How well it suits, the lower the better, and what it is.
fn read(scheme: &Value, prefix: &str) -> Option<(usize, Auth)> {
    let text = |key: &str| scheme.get(key).and_then(Value::as_str).unwrap_or_default();
    let secret = |end: &str| if prefix.is_empty() { format!("API_{end}") } else { format!("{prefix}_{end}") };
    let basic = || Auth::Basic { user: secret("USER"), password: secret("PASSWORD") };
    Some(match text("type") {
        "http" => match text("scheme").to_ascii_lowercase().as_str() {
            "bearer" => (0, Auth::Bearer(secret("TOKEN"))),
            "basic" => (3, basic()),
            _ => return None,
        },
        "basic" => (3, basic()),
        "oauth2" => (1, oauth(scheme, &secret)),
        "openIdConnect" => (1, Auth::Bearer(secret("TOKEN"))),
        "apiKey" => {
            let name = text("name");
            let token = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
            match text("in") {
                "header" if name.eq_ignore_ascii_case("authorization") => {
                    let about = text("description").to_ascii_lowercase();
                    let auth = if about.contains("bearer") {
                        Auth::Bearer(secret("TOKEN"))
                    } else {
                        Auth::Header { name: name.to_owned(), secret: secret("TOKEN"), prefix: None }
                    };
                    (2, auth)
                }
                "header" if token && !name.eq_ignore_ascii_case("cookie") && !reserved(name) => {
                    (2, Auth::Header { name: name.to_owned(), secret: secret("KEY"), prefix: None })
                }
                "query" if !name.is_empty() && name.chars().all(|c| !c.is_control() && !" &=#?{}".contains(c)) => {
                    (4, Auth::Query { name: name.to_owned(), secret: secret("KEY") })
                }
                _ => return None,
            }
        }
        _ => return None,
    })
}

/// Headers that the client sets, or that mean nothing to a program.
pub fn reserved(name: &str) -> bool {
    let meaningless = ["accept", "cookie", "user-agent"];
    catalog::is_reserved_header(name) || meaningless.contains(&name.to_ascii_lowercase().as_str())
}

/// Client credentials where that is the only way in; else a token that a person gets.
fn oauth(scheme: &Value, secret: &dyn Fn(&str) -> String) -> Auth {
    let bearer = Auth::Bearer(secret("TOKEN"));
    let flow = match scheme.get("flows").and_then(Value::as_object) {
        Some(flows) if flows.len() == 1 => flows.get("clientCredentials"),
        Some(_) => None,
        None => (scheme.get("flow").and_then(Value::as_str) == Some("application")).then_some(scheme),
    };
    let url = flow.and_then(|flow| flow.get("tokenUrl")?.as_str()).and_then(|text| url::Url::parse(text).ok());
    let Some(url) = url.filter(|url| url.scheme() == "https" && url.query().is_none()) else { return bearer };
    let origin = url.origin().ascii_serialization();
    let path = url.path();
    let fine = path.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-_.~".contains(&b)) && !path.contains("//");
    match Origin::parse(&origin) {
        Ok(origin) if fine => Auth::Oauth2 {
            origin: origin.as_str().to_owned(),
            path: path.to_owned(),
            id: secret("CLIENT_ID"),
            secret: secret("CLIENT_SECRET"),
            scopes: Vec::new(),
        },
        _ => bearer,
    }
}
