"""The grammar of `language`, as data: kinds of expressions, variables, and the lines of each kind.

`<int>` in a line stands for any expression of kind int, `$x` for a new variable of a macro, and `<int x:string>` for
an expression in which it may be used. A kind is a type under a short name, or a string that is read as something.
"""

from collections.abc import Mapping

from koordpolicy.language.cel.types import (
    BOOL,
    BYTES_VALUE,
    CIDR,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    IP,
    NULL,
    QUANTITY,
    STRING,
    TIMESTAMP,
    UINT,
    URL,
    Type,
    list_of,
    map_of,
    optional_of,
    type_of,
)

KINDS: Mapping[str, Type] = {
    "int": INT, "uint": UINT, "double": DOUBLE, "bool": BOOL, "string": STRING, "bytes": BYTES_VALUE, "null": NULL,
    "timestamp": TIMESTAMP, "duration": DURATION, "dyn": DYN, "type": type_of(DYN), "ip": IP, "cidr": CIDR,
    "url": URL, "quantity": QUANTITY,
    "ints": list_of(INT), "uints": list_of(UINT), "doubles": list_of(DOUBLE), "bools": list_of(BOOL),
    "strings": list_of(STRING), "octets": list_of(BYTES_VALUE), "times": list_of(TIMESTAMP),
    "durations": list_of(DURATION), "dyns": list_of(DYN), "intss": list_of(list_of(INT)),
    "map": map_of(STRING, INT), "names": map_of(STRING, STRING), "numbered": map_of(INT, STRING),
    "lists": map_of(STRING, list_of(STRING)),
    "optint": optional_of(INT), "optstring": optional_of(STRING), "optdyn": optional_of(DYN),
    "optints": list_of(optional_of(INT)),
}  # fmt: skip

VARIABLES: Mapping[str, str] = {
    "i": "int", "j": "int", "u": "uint", "d": "double", "e": "double", "b": "bool", "c": "bool", "s": "string",
    "r": "string", "by": "bytes", "t": "timestamp", "du": "duration", "li": "ints", "ls": "strings", "ld": "doubles",
    "la": "dyns", "ll": "intss", "m": "map", "mn": "names", "mi": "numbered", "x": "dyn", "y": "dyn", "oi": "optint",
    "os": "optstring",
}  # fmt: skip
"""The variables that an expression may name, and their kinds; a row need not have them all."""

GRAMMAR: Mapping[str, str] = {
    "int": """
        (<int> + <int>)
        (<int> - <int>)
        (<int> * <int>)
        (<int> / <int>)
        (<int> % <int>)
        (-<int>)
        <map>['a']
        <map>.b
        <map>[<string>]
        <intss>[0][<int>]
        <ints>[<int>]
        <optint>.orValue(<int>)
        int(<dyn>)
        size(<dyn>)
        cel.bind($x, <intss>, <int x:intss>)
    """,
    "uint": """
        (<uint> + <uint>)
        (<uint> - <uint>)
        (<uint> * <uint>)
        (<uint> / <uint>)
        (<uint> % <uint>)
    """,
    "double": """
        (<double> + <double>)
        (<double> - <double>)
        (<double> * <double>)
        (<double> / <double>)
        (-<double>)
    """,
    "string": """
        (<string> + <string>)
        <names>.a
        <names>[<string>]
        <numbered>[<int>]
        <strings>[<int>]
        <formatted>
        string(<dyn>)
        <names>.?b.orValue(<string>)
    """,
    "bytes": """
        (<bytes> + <bytes>)
    """,
    "bool": """
        (<bool> && <bool>)
        (<bool> || <bool>)
        (<bool> && <bool> && <bool>)
        (<bool> || <bool> || <bool>)
        (!<bool>)
        (<int> < <int>)
        (<int> <= <double>)
        (<uint> > <int>)
        (<double> >= <uint>)
        (<double> < <double>)
        (<string> < <string>)
        (<bytes> >= <bytes>)
        (<bool> < <bool>)
        (<timestamp> < <timestamp>)
        (<duration> >= <duration>)
        (<int> == <int>)
        (<uint> != <uint>)
        (<double> == <double>)
        (<string> == <string>)
        (<bytes> == <bytes>)
        (<bool> != <bool>)
        (<timestamp> == <timestamp>)
        (<duration> != <duration>)
        (<ints> == <ints>)
        (<doubles> == <doubles>)
        (<dyns> == <dyns>)
        (<intss> != <intss>)
        (<map> == <map>)
        (<names> == <names>)
        (<optint> == <optint>)
        (<dyn> == <dyn>)
        (<dyn> != <dyn>)
        (<dyn> < <dyn>)
        (<dyn> >= <int>)
        (<dyn> == <string>)
        (<type> == <type>)
        (<ip> == <ip>)
        (<cidr> == <cidr>)
        (<dyn> && <bool>)
        (<bool> || <dyn>)
        (<int> in <ints>)
        (<double> in <doubles>)
        (<string> in <strings>)
        (<dyn> in <dyns>)
        (<dyn> in <dyn>)
        (<string> in <map>)
        (<int> in <numbered>)
        (<dyn> in <names>)
        (<ints> in <intss>)
        has(<map>.a)
        has(<names>.b)
        has(<dyn>.a)
        <ints>.all($x, <bool x:int>)
        <ints>.exists($x, <bool x:int>)
        <ints>.exists_one($x, <bool x:int>)
        <strings>.all($x, <bool x:string>)
        <dyns>.exists($x, <bool x:dyn>)
        <dyn>.all($x, <bool x:dyn>)
        <map>.all($x, <bool x:string>)
        <numbered>.exists($x, <bool x:int>)
        <intss>.exists_one($x, <bool x:ints>)
        <ints>.all($x, $y, <bool x:int y:int>)
        <map>.exists($x, $y, <bool x:string y:int>)
        <names>.existsOne($x, $y, <bool x:string y:string>)
        <optdyn>.hasValue()
    """,
    "timestamp": """
        (<timestamp> + <duration>)
        (<duration> + <timestamp>)
        (<timestamp> - <duration>)
    """,
    "duration": """
        (<timestamp> - <timestamp>)
        (<duration> + <duration>)
        (<duration> - <duration>)
    """,
    "dyn": """
        dyn(<int>)
        dyn(<uint>)
        dyn(<double>)
        dyn(<bool>)
        dyn(<string>)
        dyn(<bytes>)
        dyn(<timestamp>)
        dyn(<duration>)
        dyn(<ints>)
        dyn(<dyns>)
        dyn(<map>)
        dyn(<names>)
        dyn(<numbered>)
        dyn(<optint>)
        dyn(<type>)
        dyn(null)
        dyn({'a': <int>, 'b': <string>, 1: <double>, true: <dyn>})
        <dyns>[<int>]
        <dyn>.a
        <dyn>[<dyn>]
        <dyn>['a']
        (<dyn> + <dyn>)
        (<dyn> - <dyn>)
        (<dyn> * <dyn>)
        (<dyn> / <dyn>)
        (<dyn> % <dyn>)
        (-<dyn>)
        (<bool> ? dyn(<int>) : dyn(<string>))
        (<dyn> ? <dyn> : <dyn>)
        <dyn>.?a.orValue(<dyn>)
        <optdyn>.orValue(<dyn>)
        [<int>, <string>, <dyn>][<int>]
    """,
    "type": """
        type(<int>)
        type(<double>)
        type(<string>)
        type(<dyn>)
        type(<ints>)
        type(<optint>)
        type(<type>)
        type(<duration>)
        type(<ip>)
    """,
    "ints": """
        []
        [<int>]
        [<int>, <int>]
        [?<optint>, <int>]
        (<ints> + <ints>)
        <ints>.filter($x, <bool x:int>)
        <ints>.map($x, <int x:int>)
        <strings>.map($x, <int x:string>)
        <ints>.map($x, <bool x:int>, <int x:int>)
        <ints>.transformList($x, $y, <int x:int y:int>)
        <ints>.transformList($x, $y, <bool x:int y:int>, <int x:int y:int>)
        <map>.transformList($x, $y, <int x:string y:int>).sort()
        <ints>.sortBy($x, <int x:int>)
        <ints>.sortBy($x, <string x:int>)
        <intss>[<int>]
    """,
    "uints": """
        [<uint>, <uint>]
        (<uints> + <uints>)
    """,
    "doubles": """
        [<double>]
        [<double>, <double>, <double>]
        (<doubles> + <doubles>)
        <doubles>.map($x, <double x:double>)
        <doubles>.filter($x, <bool x:double>)
    """,
    "bools": """
        [<bool>, <bool>]
    """,
    "strings": """
        [<string>]
        [<string>, <string>]
        [?<optstring>, <string>]
        (<strings> + <strings>)
        <strings>.filter($x, <bool x:string>)
        <ints>.map($x, <string x:int>)
        <map>.map($x, <string x:string>).sort()
        <strings>.sortBy($x, size($x))
    """,
    "octets": """
        [<bytes>, <bytes>]
    """,
    "times": """
        [<timestamp>, <timestamp>]
    """,
    "durations": """
        [<duration>, <duration>]
    """,
    "dyns": """
        [<int>, <string>, <double>]
        [<dyn>, <dyn>]
        [<dyn>, <int>, null]
        (<dyns> + <dyns>)
        <dyns>.filter($x, <bool x:dyn>)
        <dyns>.map($x, <dyn x:dyn>)
    """,
    "intss": """
        [<ints>, <ints>]
        [<ints>]
        <ints>.map($x, [$x, <int x:int>])
    """,
    "map": """
        {}
        {'a': <int>}
        {'a': <int>, 'b': <int>}
        {<string>: <int>, <string>: <int>}
        {?'a': <optint>, 'c': <int>}
        {?<string>: <optint>}
        <map>.transformMap($x, $y, <int x:string y:int>)
        <map>.transformMap($x, $y, <bool x:string y:int>, <int x:string y:int>)
        <map>.transformMapEntry($x, $y, {$x + 'z': $y})
        <map>.transformMapEntry($x, $y, {<string x:string y:int>: <int y:int>})
        <strings>.transformMapEntry($x, $y, {$y: $x})
    """,
    "names": """
        {'a': <string>, 'b': <string>}
        {<string>: <string>}
        {?'a': <optstring>}
        <names>.transformMap($x, $y, <string x:string y:string>)
    """,
    "numbered": """
        {<int>: <string>}
        {<int>: <string>, 1: <string>}
        <strings>.transformMap($x, $y, <string x:int y:string>)
    """,
    "optint": """
        optional.none()
        <map>.?a
        <map>[?<string>]
        <ints>[?<int>]
        <optint>.or(<optint>)
        <optint>.optMap($x, <int x:int>)
        <optstring>.optMap($x, <int x:string>)
        <optint>.optFlatMap($x, <optint x:int>)
    """,
    "optstring": """
        <names>.?a
        <names>[?<string>]
        <numbered>[?<int>]
        <strings>[?<int>]
        <optstring>.or(<optstring>)
        <optint>.optMap($x, <string x:int>)
        <optstring>.optFlatMap($x, <optstring x:string>)
    """,
    "optdyn": """
        <dyn>.?a
        <dyn>[?<dyn>]
        <dyns>[?<int>]
        optional.of(<dyn>)
        <optdyn>.or(<optdyn>)
        <dyn>.?a.?b
        optional.of(<dyn>).?a
        <optdyn>.optMap($x, <dyn x:dyn>)
        <optdyn>[?<dyn>]
    """,
    "optints": """
        [<optint>, <optint>]
    """,
    "formatted": """
        <template>.format([<any>, <any>])
        <template>.format([<any>])
        '%s %s'.format([<any>, <any>])
        '%d %x'.format([<number>, <number>])
        '%b|%o|%X'.format([<int>, <uint>, <string>])
        '%.3f %e'.format([<double>, <double>])
        '%f %.0e'.format([<number>, <number>])
    """,
    "any": """
        <int>
        <uint>
        <double>
        <bool>
        <string>
        <bytes>
        <dyn>
        <ints>
        <doubles>
        <names>
        <numbered>
        <timestamp>
        <duration>
        <type>
        null
        <optint>
    """,
    "number": """
        <int>
        <uint>
        <double>
        <dyn>
    """,
}  # fmt: skip

READ_AS: Mapping[str, str] = {
    "matches": "pattern", "find": "pattern", "findAll": "pattern", "regex.replace": "pattern", "regex.extract": "pattern",
    "regex.extractAll": "pattern", "ip": "address", "isIP": "address", "ip.isCanonical": "address", "containsIP": "address",
    "cidr": "block", "isCIDR": "block", "containsCIDR": "block", "timestamp": "date", "duration": "span", "int": "numeral", "uint": "numeral",
    "double": "numeral", "bool": "numeral", "base64.decode": "base64", "format": "template", "url": "link", "isURL": "link",
    "quantity": "amount", "isQuantity": "amount",
}  # fmt: skip
"""What a function reads its text as: the second argument of those of regular expressions, else the last text."""

LEAVES: Mapping[str, str] = {
    "ints": "[<int>]", "uints": "[1u, <uint>]", "doubles": "[<double>]", "bools": "[<bool>]", "strings": "[<string>]", "octets": "[<bytes>]",
    "times": "[<timestamp>]", "durations": "[<duration>]", "dyns": "[<int>, <string>]", "intss": "[[<int>]]", "map": "{'a': <int>}",
    "names": "{'a': <string>}", "numbered": "{1: <string>}", "lists": "{'a': [<string>]}", "optint": "optional.of(<int>)",
    "optstring": "optional.of(<string>)", "optdyn": "optional.of(dyn(<int>))", "optints": "[optional.of(<int>)]",
}  # fmt: skip
"""A kind → an expression of it with little below."""

ROOTS = (
    *("bool",) * 6, *("int",) * 3, *("string",) * 3, *("double",) * 2, "uint", "bytes", "timestamp", "duration", "dyn", "dyn", "type",
    "ints", "doubles", "strings", "dyns", "map", "names", "numbered", "optint", "optstring", "optdyn", "formatted",
)  # fmt: skip
"""The kinds of whole expressions, the commoner ones more than once."""

HIDING = ("math", "sets", "optional", "base64", "regex", "lists", "strings", "cel", "ip", "size", "i", "dyn")
"""Names of libraries, functions and variables that a variable of a macro may have as well."""
