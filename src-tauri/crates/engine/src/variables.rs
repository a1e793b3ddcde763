//! What the names of variables and headers say about their values: a secret, or a way to make a program run
//! something else.

use sha2::{Digest, Sha256};

/// Variables by which a program, its loader or its interpreter is made to load or run something that the command
/// line does not show. From the manuals of ld.so, dyld, bash, git, node, python, perl, ruby and java.
const LOADERS: [&str; 48] = [
    "PATH",
    "PATHEXT",
    "COMSPEC",
    "SHELL",
    "ENV",
    "BASH_ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "PROMPT_COMMAND",
    "ZDOTDIR",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "BROWSER",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_REPL_EXTERNAL_MODULE",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "PYTHONUSERBASE",
    "PYTHONBREAKPOINT",
    "PERL5OPT",
    "PERL5LIB",
    "PERLLIB",
    "PERL5DB",
    "RUBYOPT",
    "RUBYLIB",
    "GEM_PATH",
    "GEM_HOME",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "CLASSPATH",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "LUA_INIT",
    "LUA_PATH",
    "LUA_CPATH",
    "R_PROFILE",
    "R_PROFILE_USER",
    "DOTNET_STARTUP_HOOKS",
    "DENO_DIR",
    "GCONV_PATH",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "RUSTC_WRAPPER",
    "MAKEFLAGS",
];

/// Whether a variable can make the program run other code than its command line says.
pub(crate) fn loads_code(name: &str) -> bool {
    // Windows does not tell large letters from small ones, and npm reads its own in both.
    let name = name.to_ascii_uppercase();
    let starts = |start: &str| name.starts_with(start);
    LOADERS.contains(&name.as_str())
        || ["LD_", "DYLD_", "BASH_FUNC_", "GIT_CONFIG", "COREHOST_"].into_iter().any(starts)
        || (starts("NPM_CONFIG_")
            && [
                "SHELL",
                "NODE_OPTIONS",
                "CONFIG_GIT",
                "EDITOR",
                "USERCONFIG",
                "GLOBALCONFIG",
                "REGISTRY",
                "PREFIX",
            ]
            .iter()
            .any(|end| name.ends_with(end)))
        || (starts("GIT_")
            && [
                "SSH",
                "_COMMAND",
                "EXEC_PATH",
                "ASKPASS",
                "EDITOR",
                "PAGER",
                "EXTERNAL_DIFF",
                "TEMPLATE_DIR",
            ]
            .iter()
            .any(|end| name.ends_with(end)))
}

/// Names under which programs expect secrets. A path or an address to one is none, and what loads code never is:
/// its value is part of what is started.
pub(crate) fn names_a_secret(variable: &str) -> bool {
    let name = variable.to_ascii_uppercase();
    let words: Vec<&str> = name.split(['_', '-', '.']).filter(|word| !word.is_empty()).collect();
    let has = |word: &str| words.contains(&word);
    let last = |word: &str| words.last() == Some(&word);
    if loads_code(variable)
        || ["PATH", "FILE", "DIR", "URL", "URI", "ID", "NAME"].iter().any(|end| last(end))
        || (has("PUBLIC") && last("KEY"))
    {
        return false;
    }
    let whole = ["PASS", "PWD", "PAT", "BEARER", "COOKIE", "COOKIES", "CREDENTIAL", "CREDENTIALS", "CREDS"];
    let endings = [
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "APIKEY",
        "SECRETKEY",
        "ACCESSKEY",
        "PRIVATEKEY",
    ];
    // A working folder is called so by every shell.
    let is_folder = name == "PWD" || name == "OLDPWD";
    (!is_folder && whole.iter().any(|word| has(word)))
        || words.iter().any(|word| endings.iter().any(|end| word.ends_with(end)))
        || last("AUTH")
        || (has("KEY") && words.len() > 1)
}

/// Names of headers whose values are secrets: those of RFC 9110 and RFC 6265, and what services call theirs.
pub(crate) fn header_is_secret(header: &str) -> bool {
    let name = header.trim().to_ascii_lowercase();
    ["authorization", "proxy-authorization", "cookie"].contains(&name.as_str())
        || name.ends_with("-authorization")
        || names_a_secret(&name)
}

/// The reference in a value, where it is one.
pub(crate) fn reference(value: &str) -> Option<&str> {
    value.strip_prefix("${keychain:")?.strip_suffix('}')
}

/// What of a variable's value a yes to its program is bound to. Nothing of a secret, which may change and move to
/// the keychain without a question; but a reference to another connection's secret is part of what is started.
pub(crate) fn bound_to(server: &str, name: &str, value: &str) -> Option<String> {
    let own = reference(value).is_some_and(|to| to.split_once('/') == Some((server, name)));
    let foreign = reference(value).is_some() && !own;
    if (names_a_secret(name) || own) && !foreign && !loads_code(name) {
        return None;
    }
    Some(format!("{:x}", Sha256::digest(value.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_told_by_the_names_programs_use() {
        for name in [
            "GITHUB_TOKEN",
            "OPENAI_API_KEY",
            "DB_PASSWORD",
            "GITHUB_PAT",
            "client_secret",
            "APIKEY",
            "AUTH",
            "BEARER",
            "SECRETKEY",
            "PRIVATE_KEY",
            "CREDENTIAL",
            "COOKIE",
            "accessToken",
            "DBPASSWORD",
            "SESSION_COOKIE",
            "PROXY_AUTH",
            "FTP_PWD",
            "ACCESS_KEY",
            "npm_config__authToken",
        ] {
            assert!(names_a_secret(name), "{name}");
        }
        for name in [
            "KEY",
            "PATH",
            "TOKEN_PATH",
            "SECRET_FILE",
            "KEYBOARD",
            "AWS_ACCESS_KEY_ID",
            "TOKENIZER",
            "PUBLIC_KEY",
            "AUTH_TYPE",
            "MAX_TOKENS",
            "PWD",
            "AUTHOR",
            "GIT_ASKPASS",
            "",
        ] {
            assert!(!names_a_secret(name), "{name}");
        }
    }

    #[test]
    fn headers_that_let_someone_in_are_secrets() {
        for name in [
            "Authorization",
            "authorization ",
            "X-Api-Key",
            "api-key",
            "Cookie",
            "X-Auth-Token",
            "X-Auth",
            "Proxy-Authorization",
            "X-Goog-Authorization",
            "Private-Token",
        ] {
            assert!(header_is_secret(name), "{name}");
        }
        for name in ["Accept", "X-Request-Id", "User-Agent", "Content-Type", "X-Team"] {
            assert!(!header_is_secret(name), "{name}");
        }
    }

    #[test]
    fn what_makes_a_program_run_other_code_is_known() {
        for name in [
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "NODE_OPTIONS",
            "PYTHONPATH",
            "PYTHONSTARTUP",
            "PATH",
            "Path",
            "DYLD_INSERT_LIBRARIES",
            "BASH_ENV",
            "PERL5OPT",
            "RUBYOPT",
            "JAVA_TOOL_OPTIONS",
            "GIT_SSH_COMMAND",
            "GIT_ASKPASS",
            "GIT_CONFIG_COUNT",
            "npm_config_script_shell",
        ] {
            assert!(loads_code(name), "{name}");
        }
        for name in ["LEVEL", "HOME", "GIT_AUTHOR_NAME", "LDAP_HOST", "PATHS", "GITHUB_TOKEN"] {
            assert!(!loads_code(name), "{name}");
        }
    }

    #[test]
    fn a_yes_holds_while_a_secret_moves_and_ends_when_anything_else_changes() {
        let bound = |name: &str, value: &str| bound_to("a", name, value);
        assert_eq!(bound("A_TOKEN", "one"), bound("A_TOKEN", "two"));
        assert_eq!(bound("A_TOKEN", "one"), bound("A_TOKEN", "${keychain:a/A_TOKEN}"));
        assert_ne!(bound("A_TOKEN", "one"), bound("A_TOKEN", "${keychain:bank/A_TOKEN}"));
        assert_ne!(bound("LEVEL", "info"), bound("LEVEL", "debug"));
        assert_ne!(bound("LD_PRELOAD", "/a.so"), bound("LD_PRELOAD", "/b.so"));
        assert_ne!(bound("LD_PRELOAD", "/a.so"), bound("LD_PRELOAD", "${keychain:a/LD_PRELOAD}"));
        assert_ne!(bound("LEVEL", ""), None);
    }
}
