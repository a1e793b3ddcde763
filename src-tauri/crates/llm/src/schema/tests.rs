use super::*;
use proptest::prelude::*;
use rules::check;

mod rules;

const ALL: [Dialect; 5] =
    [Dialect::OpenAi, Dialect::OpenAiStrict, Dialect::Anthropic, Dialect::Gemini, Dialect::Ollama];

fn accepted(schema: &Value, dialect: Dialect) -> Value {
    let projected = project(schema, dialect).schema;
    assert_eq!(check(&projected, dialect), Ok(()), "{dialect:?}: {schema} became {projected}");
    projected
}

/// The schema that kills other hosts.
fn killer() -> Value {
    json!({"type": "object", "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {"p": {"type": "object", "properties": {"x": {"type": "number"}, "next": {"$ref": "#/$defs/p"}}}},
        "properties": {
            "point": {"$ref": "#/$defs/p"},
            "maybe": {"anyOf": [{"type": "string", "format": "uri"}, {"type": "null"}]},
            "rows": {"type": "array", "items": {"type": ["object", "null"]}},
            "pair": {"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}]},
            "list": {"type": "array"},
            "level": {"type": "integer", "enum": [1, 2, 3], "exclusiveMinimum": 0},
            "kind": {"const": "a"},
            "any": true,
            "map": {"type": "object", "additionalProperties": {"type": "string"}, "propertyNames": {"pattern": "^[a-z]+$"}},
            "stray": {"type": "string", "properties": {"z": {}}}
        }, "required": ["point", "ghost"]})
}

#[test]
fn the_schema_that_kills_other_hosts_is_accepted_by_all_and_stays_as_it_was() {
    let schema = killer();
    for dialect in ALL {
        accepted(&schema, dialect);
    }
    assert_eq!(schema, killer());
}

#[test]
fn what_takes_json_schema_gets_nearly_all_of_it() {
    let projected = accepted(&killer(), Dialect::OpenAi);
    assert_eq!(projected["required"], json!(["point"]));
    assert_eq!(projected["properties"]["list"]["items"], json!({}));
    assert_eq!(projected["properties"]["point"], json!({"$ref": "#/$defs/p"}));
    assert_eq!(projected["properties"]["level"]["enum"], json!([1, 2, 3]));
    assert_eq!(projected["properties"]["any"], json!({}));
    assert_eq!(accepted(&killer(), Dialect::Anthropic), projected);
}

#[test]
fn gemini_gets_its_own_subset() {
    let point = json!({"type": "object", "properties": {
        "x": {"type": "number"}, "next": {"type": "string", "description": "a JSON object, written as text"}}});
    assert_eq!(
        accepted(&killer(), Dialect::Gemini),
        json!({"type": "object", "properties": {
            "point": point,
            "maybe": {"type": "string", "nullable": true},
            "rows": {"type": "array", "items":
                {"description": "a JSON object, written as text", "type": "string", "nullable": true}},
            "pair": {"type": "array", "items": {"anyOf": [{"type": "number"}, {"type": "string"}]}},
            "list": {"type": "array", "items": {"type": "string"}},
            "level": {"type": "integer", "description": "one of: 1, 2, 3"},
            "kind": {"type": "string", "enum": ["a"]},
            "any": {"type": "string"},
            "map": {"type": "string", "description": "a JSON object, written as text"},
            "stray": {"type": "string"}
        }, "required": ["point"]})
    );
    // Nothing may stand beside a choice: what belongs to all goes into the first.
    let choice = json!({"properties": {"a": {"description": "why", "anyOf": [
        {"type": "string"}, {"type": "integer", "description": "n"}, {"type": "null"}]}}});
    assert_eq!(
        accepted(&choice, Dialect::Gemini)["properties"]["a"],
        json!({"anyOf": [{"type": "string", "nullable": true, "description": "why"}, {"type": "integer", "description": "n"}]})
    );
}

#[test]
fn strict_objects_are_closed_and_what_may_be_left_out_may_be_null() {
    let schema = json!({"properties": {
        "a": {"type": "string", "minLength": 3, "default": "x", "format": "uri", "pattern": "^(?=a)"},
        "b": {"type": "string", "enum": ["x", "y"], "format": "date"},
        "c": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "boolean"}]},
        "d": {"type": "object", "properties": {"e": {"type": "array", "items": {"type": "number"}}}, "required": ["e"]}
    }, "required": ["a"]});
    let projected = project(&schema, Dialect::OpenAiStrict);
    assert_eq!(
        projected.schema,
        json!({"type": "object", "properties": {
            "a": {"type": "string"},
            "b": {"type": ["string", "null"], "enum": ["x", "y", null]},
            "c": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "boolean"}, {"type": "null"}]},
            "d": {"type": ["object", "null"], "properties": {"e": {"type": "array", "items": {"type": "number"}}},
                "required": ["e"], "additionalProperties": false}
        }, "required": ["a", "b", "c", "d"], "additionalProperties": false})
    );
    assert!(!projected.narrowed);
    for wide in [
        json!({"properties": {"map": {"type": "object", "additionalProperties": {"type": "string"}}}}),
        json!({"properties": {"any": {}}}),
        json!({"properties": {"free": {"type": "object"}}}),
        json!({"additionalProperties": true}),
        killer(),
    ] {
        assert!(project(&wide, Dialect::OpenAiStrict).narrowed, "{wide}");
        accepted(&wide, Dialect::OpenAiStrict);
    }
    for closed in [json!({"type": "object"}), json!({"properties": {"o": {"additionalProperties": false}}})] {
        assert!(!project(&closed, Dialect::OpenAiStrict).narrowed, "{closed}");
    }
}

#[test]
fn ollama_gets_a_type_for_everything() {
    let schema = json!({"properties": {
        "a": {"description": "why", "anyOf": [{"type": "string"}, {"type": "object", "properties": {"x": true}}]},
        "b": {"oneOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
        "c": {"enum": [1, "x", null]}
    }, "required": ["b"]});
    let any = json!({"type": ["string", "number", "boolean", "object", "array"]});
    assert_eq!(
        accepted(&schema, Dialect::Ollama),
        json!({"type": "object", "properties": {
            "a": {"description": "why", "type": ["string", "object"], "properties": {"x": any}},
            "b": {"type": "array", "items": {"type": "string"}},
            "c": {"type": ["string", "integer"]}
        }, "required": ["b"]})
    );
}

#[test]
fn odd_names_of_properties_go_out_plain_and_come_back() {
    let long = "x".repeat(70);
    let schema = json!({"properties": {
        "$filter": {"type": "string"},
        "file name": {"type": "object", "properties": {"größe": {"type": "integer"}}, "required": ["größe"]},
        "list": {"type": "array", "items": {"$ref": "#/$defs/i"}},
        (long.clone()): {}, "": {}, "plain": {}
    }, "required": ["$filter", "plain"], "$defs": {"i": {"properties": {"@id": {}}}}});
    let projected = accepted(&schema, Dialect::Anthropic);
    let names: Vec<&String> = projected["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names.len(), 6);
    assert_eq!(projected["required"], json!([names[0], "plain"]));
    let id = projected["$defs"]["i"]["properties"].as_object().unwrap().keys().next().unwrap();
    let size = projected["properties"][names[1]]["required"][0].as_str().unwrap();
    let said = json!({(names[0].as_str()): "f", (names[1].as_str()): {(size): 3}, "list": [{(id.as_str()): 1}, {"@id": 2}],
        (names[3].as_str()): 1, (names[4].as_str()): 2, "plain": 3, "unknown": 4});
    assert_eq!(
        restore(&schema, Dialect::Anthropic, said),
        json!({"$filter": "f", "file name": {"größe": 3}, "list": [{"@id": 1}, {"@id": 2}], (long): 1, "": 2,
            "plain": 3, "unknown": 4})
    );
}

#[test]
fn nulls_that_only_strict_mode_asked_for_are_taken_away() {
    let schema = json!({"properties": {
        "optional": {"type": "string"},
        "needed": {"type": "string"},
        "nullable": {"type": ["string", "null"]},
        "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "deep": {"type": "array", "items": {"properties": {"optional": {"$ref": "#/$defs/n"}}}}
    }, "required": ["needed"], "$defs": {"n": {"type": "integer"}}});
    let said = json!({"optional": null, "needed": null, "nullable": null, "either": null,
        "deep": [{"optional": null}, {"optional": 1}], "unknown": null});
    let restored = json!({"needed": null, "nullable": null, "either": null, "deep": [{}, {"optional": 1}], "unknown": null});
    assert_eq!(restore(&schema, Dialect::OpenAiStrict, said.clone()), restored);
    for dialect in [Dialect::OpenAi, Dialect::Gemini, Dialect::Ollama, Dialect::Anthropic] {
        assert_eq!(restore(&schema, dialect, said.clone()), said);
    }
}

#[test]
fn a_choice_at_the_top_becomes_one_object() {
    let any = json!({"anyOf": [
        {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a", "b"]},
        {"type": "object", "properties": {"a": {"type": "string"}, "c": {}}, "required": ["a"]}]});
    let all = json!({"allOf": [
        {"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]});
    for dialect in ALL.into_iter().filter(|dialect| *dialect != Dialect::OpenAiStrict) {
        let projected = accepted(&any, dialect);
        assert_eq!(projected["required"], json!(["a"]));
        assert_eq!(projected["properties"].as_object().unwrap().len(), 3);
        assert_eq!(accepted(&all, dialect)["required"], json!(["a", "b"]));
    }
}

#[test]
fn what_holds_as_well_is_worked_in() {
    let schema = json!({"properties": {"o": {"description": "outer", "allOf": [
        {"$ref": "#/$defs/base"}, {"properties": {"b": {"type": "string"}}, "required": ["b"]}]}},
        "$defs": {"base": {"type": "object", "description": "inner", "properties": {"a": {"type": "integer"}}}}});
    assert_eq!(
        accepted(&schema, Dialect::Gemini)["properties"]["o"],
        json!({"description": "outer", "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["b"]})
    );
    // A choice of what is required says nothing of types.
    let either = json!({"properties": {"o": {"type": "object", "properties": {"a": {"type": "string"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}}});
    assert_eq!(
        accepted(&either, Dialect::Gemini)["properties"]["o"],
        json!({"type": "object", "properties": {"a": {"type": "string"}}})
    );
}

#[test]
fn no_schema_of_any_kind_is_sent_on_unmended() {
    for schema in [
        json!(null),
        json!(true),
        json!([]),
        json!({}),
        json!({"type": "string"}),
        json!({"type": "objekt", "properties": []}),
        json!({"$ref": "https://example.org/x.json"}),
        json!({"$ref": "#/$defs/loop", "$defs": {"loop": {"$ref": "#/$defs/loop"}}}),
        json!({"properties": {"a": {"$ref": "#/$defs/loop"}}, "$defs": {"loop": {"$ref": "#/$defs/loop"}}}),
        json!({"properties": {"a": {"$ref": "#/properties/b/type"}, "b": {"type": "string"}}}),
        json!({"properties": {"a": {"$ref": "#/$defs/odd/pattern"}}, "$defs": {"odd": {"pattern": {"type": "string"}}}}),
        json!({"properties": {"a b": {"type": "string"}, "c": {"$ref": "#/properties/a b"}}}),
        json!({"properties": {"a": {"$ref": "https://example.org/x.json"}, "b": {"$ref": "#/nowhere"}}}),
        json!({"properties": {"a": {"type": ["array", "nil"]}, "t": {"type": "array", "items": [{}, {}]}}}),
        json!({"properties": {"a": {"type": []}, "b": {"type": ["null"]}, "c": {"type": "null"}, "d": {"enum": [null]}}}),
        json!({"properties": {"a": {"enum": []}, "b": {"enum": [""]}, "c": {"enum": [{}]}, "d": {"type": "string", "enum": [1]}}}),
        json!({"properties": {"a": {"minimum": 1, "exclusiveMinimum": true}, "b": {"anyOf": []}, "c": {"anyOf": [true]}}}),
        json!({"properties": {"a": {"not": true}, "b": {"anyOf": [{"type": "null"}]}, "c": {"oneOf": [{"type": "null"}, {}]}}}),
        json!({"properties": {"a": {"additionalProperties": false}, "b": {"patternProperties": {"x": true}}}}),
        json!({"properties": {"a": {"required": ["b"]}, "b": {"required": "b"}}, "required": ["a", "a", 3]}),
        json!({"required": "a"}),
    ] {
        for dialect in ALL {
            accepted(&schema, dialect);
        }
    }
}

#[test]
fn a_schema_without_end_is_cut() {
    let mut deep = json!({"type": "string"});
    for _ in 0..60 {
        deep = json!({"type": "object", "properties": {"n": deep}});
    }
    let many: Map<String, Value> =
        (0..20_000).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
    let required: Vec<String> = many.keys().cloned().collect();
    let choices: Vec<String> = (0..20_000).map(|n| format!("choice {n}")).collect();
    // Each level refers to the next ten times: 10^10 in all.
    let mut bomb = Map::new();
    for level in 0..10 {
        let next: Map<String, Value> =
            (0..10).map(|n| (format!("k{n}"), json!({"$ref": format!("#/$defs/d{}", level + 1)}))).collect();
        bomb.insert(format!("d{level}"), json!({"properties": next}));
    }
    for (schema, most) in [
        (deep, 2_000),
        (json!({"properties": many, "required": required}), 500_000),
        (json!({"properties": {"c": {"enum": choices}}}), 20_000),
        (json!({"$defs": bomb, "properties": {"b": {"$ref": "#/$defs/d0"}}}), 500_000),
        (
            json!({"properties": {"a": {"description": "d".repeat(1_000_000), "default": "e".repeat(1_000_000)}}}),
            3_000,
        ),
        (json!({"properties": {("n".repeat(1_000_000)): {}}}), 1_000),
        (json!({"properties": {"a": {"anyOf": vec![json!({"type": "string"}); 100_000]}}}), 50_000),
    ] {
        let before = std::time::Instant::now();
        for dialect in ALL {
            let length = accepted(&schema, dialect).to_string().len();
            assert!(length < most, "{dialect:?}: {length}");
        }
        assert!(before.elapsed() < std::time::Duration::from_secs(20), "{:?}", before.elapsed());
    }
}

#[test]
fn a_thousand_tools_are_projected_quickly() {
    let schema = json!({"type": "object", "properties": {
        "path": {"type": "string", "description": "Where the file is, from the folder's top."},
        "mode": {"type": "string", "enum": ["read", "write", "append"]},
        "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
        "filter": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "tags": {"type": "array", "items": {"type": "string"}}
    }, "required": ["path"], "additionalProperties": false});
    let tools = vec![schema; 1_000];
    for dialect in ALL {
        let before = std::time::Instant::now();
        let bytes: usize =
            tools.iter().map(|tool| project(tool, dialect).schema.as_object().map_or(0, Map::len)).sum();
        assert!(bytes > 0);
        // The app's own build needs 20 µs a tool; this one is many times slower, and shares the machine.
        assert!(before.elapsed() < std::time::Duration::from_secs(3), "{dialect:?}: {:?}", before.elapsed());
    }
}

/// Schemas as bad as they come: each keyword with anything, nested.
fn any_schema() -> impl Strategy<Value = Value> {
    let odd = prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!(false)),
        Just(json!(-3)),
        Just(json!(1.5)),
        Just(json!("")),
        Just(json!("x")),
        Just(json!([])),
        Just(json!({})),
        Just(json!([1, "a", null, {}])),
        Just(json!("#/$defs/a")),
        Just(json!("#/$defs/b")),
        Just(json!("#")),
        Just(json!("#/properties/a")),
        Just(json!("object")),
        Just(json!("array")),
        Just(json!("string")),
        Just(json!("null")),
        Just(json!(["string", "null"])),
        Just(json!(["object", "array"])),
        Just(json!(["a", "c"])),
        Just(json!("integer")),
    ];
    let key = prop::sample::select(vec![
        "type",
        "type",
        "$ref",
        "enum",
        "const",
        "items",
        "prefixItems",
        "properties",
        "required",
        "additionalProperties",
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "if",
        "then",
        "$defs",
        "definitions",
        "patternProperties",
        "minimum",
        "exclusiveMaximum",
        "minLength",
        "maxItems",
        "pattern",
        "format",
        "description",
        "default",
        "nullable",
        "what",
    ]);
    let leaf = prop::collection::vec((key.clone(), odd.clone()), 0..5).prop_map(|pairs| {
        Value::Object(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    });
    leaf.prop_recursive(5, 60, 5, move |inner| {
        let name = prop::sample::select(vec!["a", "b", "c d", "$e"]);
        let map = prop::collection::vec((name, inner.clone()), 0..4).prop_map(|pairs| {
            Value::Object(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
        });
        let value = prop_oneof![
            2 => odd.clone(),
            3 => inner.clone(),
            3 => map,
            2 => prop::collection::vec(inner, 0..4).prop_map(Value::Array),
        ];
        prop::collection::vec((key.clone(), value), 0..6).prop_map(|pairs| {
            Value::Object(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_schema_becomes_one_that_is_accepted(schema in any_schema()) {
        for dialect in ALL {
            let projected = project(&schema, dialect).schema;
            prop_assert_eq!(check(&projected, dialect), Ok(()), "{:?}: {} became {}", dialect, schema, projected);
            // What was projected once is fit to be projected again.
            prop_assert_eq!(check(&project(&projected, dialect).schema, dialect), Ok(()));
        }
    }

    #[test]
    fn arguments_with_plain_names_pass_unchanged(schema in any_schema(), a in 0..9_i64, b in ".{0,5}") {
        let said = json!({"a": a, "b": [{"a": b}]});
        for dialect in ALL {
            prop_assert_eq!(restore(&schema, dialect, said.clone()), said.clone());
        }
    }
}
