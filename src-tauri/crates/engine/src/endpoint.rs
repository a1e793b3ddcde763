//! From an entry of `mcp.json` to what the client needs to reach it: the program found and its variables filled in, or
//! the address with its headers. Whether it may be reached at all has been asked before.

use crate::config::mcp_json::{Entry, Reach};
use crate::config::placeholders;
use crate::home::Programs;
use crate::{error, secrets, variables};
use contract::{Action, AppError, ErrorCode, ServerId};
use mcp::{Endpoint, HttpConfig, StdioConfig};
use sha2::{Digest, Sha256};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use store::Secrets;
use url::{Host, Url};

/// What is around an entry.
pub(crate) struct Place<'a, S: Secrets> {
    pub home: &'a Path,
    pub programs: &'a Programs,
    pub secrets: &'a S,
    /// The file the entry stands in.
    pub file: &'a Path,
}

/// The way to reach an entry. `program` is what its command was found as.
///
/// # Errors
/// `server.program_missing`, `config.entry`, `connect.not_allowed` for an address that is never contacted, and what the
/// keychain says.
pub(crate) async fn of<S: Secrets>(
    entry: &Entry,
    program: Option<PathBuf>,
    place: &Place<'_, S>,
) -> Result<Endpoint, AppError> {
    let id = entry.id.as_str();
    let unusable = |why: String| unusable(entry, place.file, why);
    let lookup = |name: &str| std::env::var(name).ok();
    let expand =
        |text: &String| placeholders::expand(text, &lookup).map_err(|missing| unusable(missing.to_string()));
    match &entry.reach {
        Reach::BuiltIn => Ok(Endpoint::Stdio(StdioConfig {
            program: place.programs.files.clone(),
            args: Vec::new(),
            cwd: None,
            // It must know the folder that is never served.
            env: vec![("PARLEY_HOME".into(), place.home.display().to_string())],
        })),
        Reach::Program { command, args, cwd, env } => {
            let program = program.ok_or_else(|| {
                let missing = mcp::McpError::ProgramMissing { program: command.clone() };
                error::from_mcp(missing, &entry.id, id, None)
            })?;
            let mut values = Vec::new();
            for (name, value) in env {
                let value = match variables::reference(value) {
                    Some(reference) => secrets::env_value(place.secrets, reference, place.file).await?,
                    None => expand(value)?,
                };
                values.push((name.clone(), value));
            }
            let args = args.iter().map(expand).collect::<Result<_, _>>()?;
            Ok(Endpoint::Stdio(StdioConfig { program, args, cwd: cwd.clone(), env: values }))
        }
        Reach::Address { url, sse, headers } => {
            let address = address(&expand(url)?).map_err(|why| match why {
                Refused::NoAddress(why) => unusable(why),
                Refused::Never => never(entry),
            })?;
            if leads_to_never(&address).await {
                return Err(never(entry));
            }
            let mut values = Vec::new();
            for (name, value) in headers {
                let value = match variables::reference(value) {
                    Some(reference) => {
                        secrets::header_value(place.secrets, reference, url, place.file).await?
                    }
                    None => expand(value)?,
                };
                values.push((name.clone(), value));
            }
            Ok(Endpoint::Http(HttpConfig { url: address, headers: values, sse: *sse }))
        }
        Reach::Unusable(why) => Err(unusable(why.clone())),
    }
}

/// What a yes to an address is bound to: where it leads, the names of its headers, and a digest of each value that is no
/// secret.
pub(crate) fn connect_fingerprint(id: &ServerId, url: &str, headers: &[(String, String)]) -> String {
    let mut bound: Vec<(String, Option<String>)> = headers
        .iter()
        .map(|(name, value)| {
            // A reference to another connection's secret is part of what is contacted, whatever the header's name.
            let own =
                variables::reference(value).is_none_or(|to| to.split_once('/') == Some((id.as_str(), name)));
            let secret = own && variables::header_is_secret(name);
            let value = if secret { None } else { variables::bound_to(id.as_str(), name, value) };
            (name.to_ascii_lowercase(), value)
        })
        .collect();
    bound.sort_unstable();
    let whole = serde_json::json!(["connect", url, bound]).to_string();
    format!("{:x}", Sha256::digest(whole.as_bytes()))
}

/// The host as a person should see it: as it is on the wire, so that letters of other alphabets cannot pass for known
/// ones.
pub(crate) fn shown_host(url: &str) -> String {
    Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
}

fn unusable(entry: &Entry, file: &Path, why: String) -> AppError {
    AppError::new(ErrorCode::ConfigEntry)
        .with("file", file.file_name().and_then(|name| name.to_str()).unwrap_or("mcp.json"))
        .with("entry", entry.id.as_str())
        .because(why)
        .action(Action::OpenFile { path: file.display().to_string(), line: None })
}

fn never(entry: &Entry) -> AppError {
    AppError::new(ErrorCode::ConnectNotAllowed)
        .with("server", entry.id.as_str())
        .because("link-local and metadata addresses are never contacted")
}

enum Refused {
    NoAddress(String),
    Never,
}

/// An address that may be contacted when the person agrees.
fn address(text: &str) -> Result<Url, Refused> {
    let url = Url::parse(text.trim())
        .map_err(|error| Refused::NoAddress(format!("\"url\" is no address: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Refused::NoAddress(format!("\"url\" begins with {}:, not with https:", url.scheme())));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Refused::NoAddress("\"url\" holds a password; use \"headers\"".to_owned()));
    }
    let literal = match url.host() {
        Some(Host::Ipv4(ip)) => Some(IpAddr::V4(ip)),
        Some(Host::Ipv6(ip)) => Some(IpAddr::V6(ip)),
        Some(Host::Domain(_)) => None,
        None => return Err(Refused::NoAddress("\"url\" names no computer".to_owned())),
    };
    if literal.is_some_and(is_never) { Err(Refused::Never) } else { Ok(url) }
}

/// Addresses that only a machine's own network knows, where clouds keep their keys (RFC 3927, RFC 4291 section 2.5.6).
fn is_never(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_unspecified() || ip.is_broadcast() || ip.is_multicast(),
        IpAddr::V6(ip) => {
            let metadata = ip.segments() == [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254];
            let mapped = ip.to_ipv4_mapped().is_some_and(|ip| is_never(IpAddr::V4(ip)));
            ip.is_unicast_link_local() || ip.is_unspecified() || ip.is_multicast() || metadata || mapped
        }
    }
}

/// Whether the name leads to such an address now. A name that cannot be found is told when it is contacted.
async fn leads_to_never(url: &Url) -> bool {
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else { return false };
    match tokio::time::timeout(std::time::Duration::from_secs(5), tokio::net::lookup_host((host, port))).await
    {
        Ok(Ok(mut found)) => found.any(|address| is_never(address.ip())),
        Ok(Err(_)) | Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_only_the_network_itself_knows_are_never_contacted() {
        for never in [
            "http://169.254.169.254/latest/meta-data",
            "https://[fe80::1]/",
            "http://[fd00:ec2::254]/",
            "http://[::ffff:169.254.169.254]/",
            "http://0.0.0.0:80/",
            "http://2852039166/",
        ] {
            assert!(matches!(address(never), Err(Refused::Never)), "{never}");
        }
        for good in [
            "https://a.example/mcp",
            "http://127.0.0.1:3000/mcp",
            "http://192.168.1.4/mcp",
            " https://[::1]/ ",
        ] {
            assert!(address(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "a.example",
            "ftp://a.example",
            "file:///etc/passwd",
            "https://u:p@a.example",
            "javascript:x",
        ] {
            assert!(matches!(address(bad), Err(Refused::NoAddress(_))), "{bad}");
        }
    }

    #[test]
    fn a_yes_to_an_address_is_for_that_address_and_those_headers() {
        let print = |url: &str, headers: &[(&str, &str)]| {
            let headers: Vec<_> = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
            connect_fingerprint(&"s".into(), url, &headers)
        };
        let bound = print("https://a.example/mcp", &[("Authorization", "Bearer a"), ("X-Team", "red")]);
        // A secret that moved to the keychain, or was renewed, is the same connection.
        assert_eq!(
            bound,
            print(
                "https://a.example/mcp",
                &[("authorization", "${keychain:s/authorization}"), ("X-Team", "red")]
            )
        );
        assert_ne!(
            bound,
            print("https://a.example/mcp", &[("Authorization", "${keychain:t/a}"), ("X-Team", "red")])
        );
        assert_ne!(
            bound,
            print("https://a.example/mcp", &[("Authorization", "Bearer a"), ("X-Team", "blue")])
        );
        assert_ne!(
            bound,
            print("https://a.example/other", &[("Authorization", "Bearer a"), ("X-Team", "red")])
        );
        assert_ne!(bound, print("https://a.example/mcp", &[]));
        assert_eq!(shown_host("https://münchen.example/x"), "xn--mnchen-3ya.example");
    }
}
