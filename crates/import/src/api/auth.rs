//! The credential of an API: the security scheme of most operations, as a catalog declares it.
//! Invariant: a secret is only named. A scheme that a catalog cannot declare is left out with a guess.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use base::{Auth, Origin};
use serde_json::Value;

use crate::names;
use crate::spec::{Operation, ParamLocation, Spec};

/// The number of schemes that are looked at.
const MAX_SCHEMES: usize = 40;

/// The credential of an API.
#[derive(Debug, Default)]
pub struct Credential {
    pub auth: Option<Auth>,
    /// Whether some operations need no credential.
    pub anonymous: bool,
    /// Texts of guesses about the credential.
    pub guesses: Vec<String>,
}

/// Chooses the scheme that most operations need. Secrets are named after the catalog's id.
pub fn credential(spec: &Spec, operations: &[Operation<'_>], id: &str) -> Credential {
    let path: &[&str] = if spec.is_swagger { &["securityDefinitions"] } else { &["components", "securitySchemes"] };
    let prefix = names::snake(id).to_ascii_uppercase();
    let Some(schemes) = spec.map(path).filter(|schemes| !schemes.is_empty()) else {
        return credential_of_params(operations, &prefix);
    };
    let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
    let common = spec.root().get("security");
    let mut has_open_operation = false;
    for operation in operations {
        let needs = operation.security.or(common).and_then(Value::as_array);
        let needs = needs.map(Vec::as_slice).unwrap_or_default();
        has_open_operation |= needs.is_empty() || needs.iter().any(|one| one.as_object().is_some_and(|o| o.is_empty()));
        for name in needs.iter().filter_map(Value::as_object).flat_map(|one| one.keys()) {
            *uses.entry(name).or_default() += 1;
        }
    }
    // Many specifications declare schemes and forget to say that operations need them.
    let is_unused = uses.is_empty();
    let mut usable: Vec<Scheme> = Vec::new();
    let mut unusable: Vec<&str> = Vec::new();
    for (name, scheme) in schemes.iter().take(MAX_SCHEMES) {
        let uses = uses.get(name.as_str()).copied().unwrap_or(0);
        if uses == 0 && !is_unused {
            continue;
        }
        match auth_of_scheme(spec.follow(scheme), &prefix) {
            Some((rank, auth)) => usable.push(Scheme { name, uses, rank, auth }),
            None => unusable.push(name),
        }
    }
    usable.sort_by_key(|scheme| (Reverse(scheme.uses), scheme.rank));
    let mut guesses = Vec::new();
    let others: Vec<&str> = usable.iter().skip(1).map(|scheme| scheme.name).chain(unusable).collect();
    if !others.is_empty() && !usable.is_empty() {
        guesses.push(format!(
            "auth is the scheme `{}`; the specification also has {}",
            usable[0].name,
            quoted_list(&others)
        ));
    } else if !others.is_empty() {
        guesses.push(format!("no catalog can carry the auth of {}", quoted_list(&others)));
    }
    let auth = usable.into_iter().next().map(|scheme| scheme.auth);
    let anonymous = auth.is_some() && !is_unused && has_open_operation;
    Credential { auth, anonymous, guesses }
}

/// A security scheme that a catalog can declare.
struct Scheme<'s> {
    name: &'s str,
    /// The number of operations that need it.
    uses: usize,
    /// The preference among schemes with as many uses; the lowest is the best.
    rank: usize,
    auth: Auth,
}

/// Returns the credential of a specification without schemes: a key that most operations take as a parameter.
fn credential_of_params(operations: &[Operation<'_>], prefix: &str) -> Credential {
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
        let is_key = keys.contains(&names::snake(param.name).as_str()) && param.required;
        let is_sent = matches!(param.location, ParamLocation::Query | ParamLocation::Header);
        if is_key && is_sent && !is_reserved_header(param.name) {
            *count.entry((param.location == ParamLocation::Header, param.name)).or_default() += 1;
        }
    }
    let most_used = count.into_iter().max_by_key(|(_, n)| *n).filter(|(_, n)| n * 2 > operations.len());
    if let Some(((is_header, name), _)) = most_used {
        // The parameter is read as the scheme that the specification forgot, so that the same rules apply to its name.
        let location = if is_header { "header" } else { "query" };
        let scheme = serde_json::json!({"type": "apiKey", "in": location, "name": name});
        if let Some((_, auth)) = auth_of_scheme(&scheme, prefix) {
            let guess = format!("the parameter `{name}`, which most operations need, is taken for the credential");
            return Credential { auth: Some(auth), anonymous: false, guesses: vec![guess] };
        }
    }
    let guess = "the specification has no security scheme: add `auth` if the API wants a credential";
    let guesses = if operations.is_empty() { Vec::new() } else { vec![guess.to_owned()] };
    Credential { guesses, ..Credential::default() }
}

/// Returns the first names of a list in backticks.
fn quoted_list(names: &[&str]) -> String {
    let shown: Vec<String> =
        names.iter().take(4).map(|name| format!("`{}`", name.chars().take(40).collect::<String>())).collect();
    shown.join(", ")
}

/// Returns a security scheme as a catalog declares it, with its rank; `None` where a catalog cannot declare it.
fn auth_of_scheme(scheme: &Value, prefix: &str) -> Option<(usize, Auth)> {
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
            let is_header_name =
                !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
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
                "header" if is_header_name && !name.eq_ignore_ascii_case("cookie") && !is_reserved_header(name) => {
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

/// Returns whether the client sets this header itself, or the header means nothing to a program.
pub fn is_reserved_header(name: &str) -> bool {
    let meaningless = ["accept", "cookie", "user-agent"];
    catalog::is_reserved_header(name) || meaningless.contains(&name.to_ascii_lowercase().as_str())
}

/// Returns the client-credentials grant if it is the only flow, else a bearer token that a person fetches.
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
    let is_valid_path =
        path.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-_.~".contains(&b)) && !path.contains("//");
    match Origin::parse(&origin) {
        Ok(token_origin) if is_valid_path => Auth::Oauth2 {
            token_origin,
            token_path: path.to_owned(),
            client_id: secret("CLIENT_ID"),
            client_secret: secret("CLIENT_SECRET"),
            scopes: Vec::new(),
        },
        _ => bearer,
    }
}
