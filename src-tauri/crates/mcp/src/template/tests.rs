use super::*;
use proptest::prelude::*;

fn text(value: &str) -> TemplateValue {
    TemplateValue::Text(value.to_owned())
}

fn list(items: &[&str]) -> TemplateValue {
    TemplateValue::List(items.iter().map(|item| (*item).to_owned()).collect())
}

fn map(pairs: &[(&str, &str)]) -> TemplateValue {
    TemplateValue::Map(pairs.iter().map(|(key, item)| ((*key).to_owned(), (*item).to_owned())).collect())
}

/// The variables of RFC 6570 section 3.2.
fn values() -> BTreeMap<String, TemplateValue> {
    [
        ("count", list(&["one", "two", "three"])),
        ("dom", list(&["example", "com"])),
        ("dub", text("me/too")),
        ("hello", text("Hello World!")),
        ("half", text("50%")),
        ("var", text("value")),
        ("who", text("fred")),
        ("base", text("http://example.com/home/")),
        ("path", text("/foo/bar")),
        ("list", list(&["red", "green", "blue"])),
        ("keys", map(&[("semi", ";"), ("dot", "."), ("comma", ",")])),
        ("v", text("6")),
        ("x", text("1024")),
        ("y", text("768")),
        ("empty", text("")),
        ("empty_keys", map(&[])),
        // Not of the RFC.
        ("empties", list(&["", "a"])),
        ("empty_pair", map(&[("k", "")])),
        ("word", text("drücken")),
        ("encoded", text("a%2Fb%zz")),
        ("Stra%C3%9Fe", text("Grüner Weg")),
        ("last.name", text("Doe")),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

fn expand(template: &str) -> Result<String, String> {
    UriTemplate::parse(template).unwrap().expand(&values())
}

#[test]
fn every_example_of_the_standard_comes_out_as_printed() {
    for (template, expected) in [
        // 2.1
        ("'{count}'", "'one,two,three'"),
        // 3.2.1
        ("{count}", "one,two,three"),
        ("{count*}", "one,two,three"),
        ("{/count}", "/one,two,three"),
        ("{/count*}", "/one/two/three"),
        ("{;count}", ";count=one,two,three"),
        ("{;count*}", ";count=one;count=two;count=three"),
        ("{?count}", "?count=one,two,three"),
        ("{?count*}", "?count=one&count=two&count=three"),
        ("{&count*}", "&count=one&count=two&count=three"),
        // 3.2.2
        ("{var}", "value"),
        ("{hello}", "Hello%20World%21"),
        ("{half}", "50%25"),
        ("O{empty}X", "OX"),
        ("O{undef}X", "OX"),
        ("{x,y}", "1024,768"),
        ("{x,hello,y}", "1024,Hello%20World%21,768"),
        ("?{x,empty}", "?1024,"),
        ("?{x,undef}", "?1024"),
        ("?{undef,y}", "?768"),
        ("{var:3}", "val"),
        ("{var:30}", "value"),
        ("{list}", "red,green,blue"),
        ("{list*}", "red,green,blue"),
        ("{keys}", "semi,%3B,dot,.,comma,%2C"),
        ("{keys*}", "semi=%3B,dot=.,comma=%2C"),
        // 3.2.3
        ("{+var}", "value"),
        ("{/var,empty}", "/value/"),
        ("{/var,undef}", "/value"),
        ("{+hello}", "Hello%20World!"),
        ("{+half}", "50%25"),
        ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"),
        ("{+base}index", "http://example.com/home/index"),
        ("O{+empty}X", "OX"),
        ("O{+undef}X", "OX"),
        ("{+path}/here", "/foo/bar/here"),
        ("{+path:6}/here", "/foo/b/here"),
        ("here?ref={+path}", "here?ref=/foo/bar"),
        ("up{+path}{var}/here", "up/foo/barvalue/here"),
        ("{+x,hello,y}", "1024,Hello%20World!,768"),
        ("{+path,x}/here", "/foo/bar,1024/here"),
        ("{+list}", "red,green,blue"),
        ("{+list*}", "red,green,blue"),
        ("{+keys}", "semi,;,dot,.,comma,,"),
        ("{+keys*}", "semi=;,dot=.,comma=,"),
        // 3.2.4
        ("{#var}", "#value"),
        ("{#hello}", "#Hello%20World!"),
        ("{#half}", "#50%25"),
        ("foo{#empty}", "foo#"),
        ("foo{#undef}", "foo"),
        ("{#x,hello,y}", "#1024,Hello%20World!,768"),
        ("{#path,x}/here", "#/foo/bar,1024/here"),
        ("{#path:6}/here", "#/foo/b/here"),
        ("{#list}", "#red,green,blue"),
        ("{#list*}", "#red,green,blue"),
        ("{#keys}", "#semi,;,dot,.,comma,,"),
        // 3.2.5
        ("{.who}", ".fred"),
        ("{.who,who}", ".fred.fred"),
        ("{.half,who}", ".50%25.fred"),
        ("www{.dom*}", "www.example.com"),
        ("X{.var}", "X.value"),
        ("X{.var:3}", "X.val"),
        ("X{.empty}", "X."),
        ("X{.undef}", "X"),
        ("X{.list}", "X.red,green,blue"),
        ("X{.list*}", "X.red.green.blue"),
        ("{#keys*}", "#semi=;,dot=.,comma=,"),
        ("X{.empty_keys}", "X"),
        ("X{.empty_keys*}", "X"),
        // 3.2.6
        ("{/who}", "/fred"),
        ("{/who,who}", "/fred/fred"),
        ("{/half,who}", "/50%25/fred"),
        ("{/who,dub}", "/fred/me%2Ftoo"),
        ("{/var}", "/value"),
        ("{/var,x}/here", "/value/1024/here"),
        ("{/var:1,var}", "/v/value"),
        ("{/list}", "/red,green,blue"),
        ("{/list*}", "/red/green/blue"),
        ("{/list*,path:4}", "/red/green/blue/%2Ffoo"),
        ("{/keys}", "/semi,%3B,dot,.,comma,%2C"),
        ("{/keys*}", "/semi=%3B/dot=./comma=%2C"),
        // 3.2.7
        ("{;who}", ";who=fred"),
        ("{;half}", ";half=50%25"),
        ("{;empty}", ";empty"),
        ("{;hello:5}", ";hello=Hello"),
        ("{;v,empty,who}", ";v=6;empty;who=fred"),
        ("{;v,bar,who}", ";v=6;who=fred"),
        ("{;x,y}", ";x=1024;y=768"),
        ("{;x,y,empty}", ";x=1024;y=768;empty"),
        ("{;x,y,undef}", ";x=1024;y=768"),
        ("{;list}", ";list=red,green,blue"),
        ("{;list*}", ";list=red;list=green;list=blue"),
        ("{;keys}", ";keys=semi,%3B,dot,.,comma,%2C"),
        ("{;keys*}", ";semi=%3B;dot=.;comma=%2C"),
        // 3.2.8
        ("{?who}", "?who=fred"),
        ("{?half}", "?half=50%25"),
        ("{?x,y}", "?x=1024&y=768"),
        ("{?x,y,empty}", "?x=1024&y=768&empty="),
        ("{?x,y,undef}", "?x=1024&y=768"),
        ("{?var:3}", "?var=val"),
        ("{?list}", "?list=red,green,blue"),
        ("{?list*}", "?list=red&list=green&list=blue"),
        ("{?keys}", "?keys=semi,%3B,dot,.,comma,%2C"),
        ("{?keys*}", "?semi=%3B&dot=.&comma=%2C"),
        // 3.2.9
        ("{&who}", "&who=fred"),
        ("{&half}", "&half=50%25"),
        ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
        ("{&var:3}", "&var=val"),
        ("{&x,y,empty}", "&x=1024&y=768&empty="),
        ("{&x,y,undef}", "&x=1024&y=768"),
        ("{&list}", "&list=red,green,blue"),
        ("{&list*}", "&list=red&list=green&list=blue"),
        ("{&keys}", "&keys=semi,%3B,dot,.,comma,%2C"),
        ("{&keys*}", "&semi=%3B&dot=.&comma=%2C"),
    ] {
        assert_eq!(expand(template).as_deref(), Ok(expected), "{template}");
    }
}

#[test]
fn what_the_examples_leave_open_follows_the_algorithm() {
    for (template, expected) in [
        ("", ""),
        ("plain", "plain"),
        ("{/empties*}{?empties*}", "//a?empties=&empties=a"),
        ("{;empties*}{;empty_pair*}{?empty_pair*}{empty_pair*}", ";empties;empties=a;k?k=k="),
        ("{?empties}", "?empties=,a"),
        ("{word}{word:3}", "dr%C3%BCckendr%C3%BC"),
        ("{encoded}", "a%252Fb%25zz"),
        ("{+encoded}", "a%2Fb%25zz"),
        ("{+encoded:2}{+encoded:3}{encoded:2}", "a%2Fa%2Fba%25"),
        ("{?Stra%C3%9Fe,last.name}", "?Stra%C3%9Fe=Gr%C3%BCner%20Weg&last.name=Doe"),
        ("/caf\u{e9} \"x\"\n%41%4", "/caf%C3%A9%20%22x%22%0A%41%254"),
        ("%a\u{e9}", "%25a%C3%A9"),
    ] {
        assert_eq!(expand(template).as_deref(), Ok(expected), "{template}");
    }
}

#[test]
fn what_is_no_template_is_refused() {
    for template in [
        "{/id*",
        "/id*}",
        "{/?id}",
        "{var:prefix}",
        "{hello:2*}",
        "{??hello}",
        "{!hello}",
        "{with space}",
        "{ a}",
        "{a }",
        "{=path}",
        "{$var}",
        "{|var*}",
        "{*keys?}",
        "{?empty=default,var}",
        "{-prefix|/-/|var}",
        "{example:color?}",
        "{#hello+}",
        "/people/{~thing}",
        "{default-graph-uri}",
        "{?x, y}",
        "{var:0}",
        "{var:01}",
        "{var:10000}",
        "{var:}",
        "{var:+1}",
        "{x.}",
        "{.x.}",
        "{x..y}",
        "{%2x}",
        "{}",
        "{+}",
        "{a,}",
        "{,a}",
        "{a,,b}",
        "{a{b}}",
        "{é}",
        "{a}}",
        "}{",
    ] {
        assert!(UriTemplate::parse(template).is_err(), "{template}");
    }
    assert!(UriTemplate::parse(&"{a}".repeat(MAX_VARIABLES)).is_ok());
    assert!(UriTemplate::parse(&"{a}".repeat(MAX_VARIABLES + 1)).is_err());
    assert!(UriTemplate::parse(&"a".repeat(MAX_BYTES + 1)).is_err());
}

#[test]
fn a_beginning_is_had_of_text_only() {
    assert!(expand("{keys:1}").is_err() && expand("{+list:1}").is_err());
}

#[test]
fn an_address_stays_within_bounds() {
    let template = UriTemplate::parse(&"{a}".repeat(MAX_VARIABLES)).unwrap();
    let values = |size: usize| BTreeMap::from([("a".to_owned(), text(&"x".repeat(size)))]);
    assert_eq!(template.expand(&values(600)).unwrap().len(), 60_000);
    assert!(template.expand(&values(700)).is_err());
    assert!(template.expand(&values(10_000_000)).is_err());
}

#[test]
fn each_variable_is_named_once_and_in_order() {
    let template = UriTemplate::parse("x{?b,a*}{/b:3,c.d}{a}").unwrap();
    assert_eq!(template.variables(), ["b", "a", "c.d"]);
}

proptest! {
    #[test]
    fn no_text_upsets_the_reader(template in "[{}%:*,+#./;?&a-c0-9é\\x00 ]{0,40}", value in ".{0,20}") {
        if let Ok(read) = UriTemplate::parse(&template) {
            let values = read.variables().into_iter().map(|name| (name.to_owned(), text(&value))).collect();
            let expanded = read.expand(&values).unwrap();
            prop_assert!(expanded.bytes().all(|byte| byte.is_ascii_graphic()), "{expanded}");
        }
    }
}
