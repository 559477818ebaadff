//! The choice of an API's credential: the security scheme that most operations need, as a catalog declares it.
//! Invariant: the draft contains names of secrets, never values. A scheme that a catalog cannot declare is reported as a guess.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use base::{Auth, Origin};
use serde_json::Value;

use crate::names;
use crate::spec::{Operation, ParamLocation, Spec};

/// The maximum number of security schemes that are read from one specification.
const MAX_SCHEMES: usize = 40;

/// The credential that was chosen for an API, with the assumptions behind the choice.
#[derive(Debug, Default)]
pub struct Credential {
    pub auth: Option<Auth>,
    /// Whether some operations need no credential.
    pub anonymous: bool,
    /// Assumptions about the credential that a person should check, as texts of the report.
    pub guesses: Vec<String>,
}

/// Chooses the security scheme that most operations need. `id` is the catalog's id, which prefixes the names of the secrets.
pub fn choose_credential(spec: &Spec, operations: &[Operation<'_>], id: &str) -> Credential {
    let path: &[&str] = if spec.is_swagger { &["securityDefinitions"] } else { &["components", "securitySchemes"] };
    let prefix = names::snake_case(id).to_ascii_uppercase();
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
    // Many specifications declare schemes but have no `security` key. In this case every declared scheme is a candidate.
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
    /// The number of operations that need the scheme.
    uses: usize,
    /// The preference among schemes with the same number of uses. The lowest rank wins.
    rank: usize,
    auth: Auth,
}

/// Returns the credential of a specification that declares no schemes. A required API-key parameter of most operations is taken
/// as the credential.
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
        let is_key = keys.contains(&names::snake_case(param.name).as_str()) && param.required;
        let is_sent = matches!(param.location, ParamLocation::Query | ParamLocation::Header);
        if is_key && is_sent && !is_reserved_header(param.name) {
            *count.entry((param.location == ParamLocation::Header, param.name)).or_default() += 1;
        }
    }
    let most_used = count.into_iter().max_by_key(|(_, n)| *n).filter(|(_, n)| n * 2 > operations.len());
    if let Some(((is_header, name), _)) = most_used {
        // The parameter is handled as an `apiKey` scheme, so that the rules for header and query names also apply to it.
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

/// Returns the first four names of a list in backticks, separated by commas.
fn quoted_list(names: &[&str]) -> String {
    let shown: Vec<String> =
        names.iter().take(4).map(|name| format!("`{}`", name.chars().take(40).collect::<String>())).collect();
    shown.join(", ")
}

/// Returns the rank and the catalog declaration of a security scheme; `None` if a catalog cannot declare it.
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
        "oauth2" => (1, oauth_auth(scheme, &secret)),
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

/// Returns whether a header must not become a parameter. The HTTP client sets such a header itself, or its value does not
/// change the rows.
pub fn is_reserved_header(name: &str) -> bool {
    let meaningless = ["accept", "cookie", "user-agent"];
    catalog::is_reserved_header(name) || meaningless.contains(&name.to_ascii_lowercase().as_str())
}

/// Returns the client-credentials grant if it is the only flow of the scheme. Otherwise a person fetches a bearer token.
fn oauth_auth(scheme: &Value, secret: &dyn Fn(&str) -> String) -> Auth {
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
