--TEST--
PHP values convert to JSON and back within limits; unsupported types and encodings are refused
--FILE--
<?php
require __DIR__ . '/fixtures/lib.php';
use WPCodebox\Native\{Artifacts, Redactor};

// Values that convert to JSON and back unchanged.
$value = [
	'null'   => null,
	'bools'  => [ true, false ],
	'int'    => PHP_INT_MIN,
	'float'  => 1.5,
	'text'   => "h\u{e9}\0\n",
	'list'   => [ 1, [ 2 ] ],
	'empty'  => [],
	'number' => [ 5 => 'five', 7 => 'seven' ],
	'mixed'  => [ 'a' => 1, 0 => 2 ],
	''       => 'empty key',
];
var_dump( Redactor::data( $value ) === $value );
echo Artifacts::canonicalJson( [ 'b' => [], 'a' => [ 5 => 'five' ], 'c' => [ 1, 2 ] ] ), "\n";
foreach ( [ 'x', 5, 1.0, true, null ] as $scalar ) {
	echo Artifacts::canonicalJson( $scalar ), "\n";
}
// Whole floats become integers: JSON has one type of numbers, and PHP decodes 7382.0 to a float.
var_dump( Redactor::data( [ 7382.0, -0.0, -9007199254740992.0, 9007199254740994.0, 7382.5, 1e300 ] ) );
$one = [ 1 ];
$ref = [ 'r' => &$one ];
echo Artifacts::canonicalJson( $ref ), "\n";

// Values that are refused with their position.
$refused = [
	'not UTF-8'       => [ 'a' => [ 'b' => [ "\xff" ] ] ],
	'key not UTF-8'   => [ 'a' => [ "\xff" => 1 ] ],
	'surrogate'       => [ "\xed\xa0\x80" ],
	'nan'             => [ 'n' => NAN ],
	'infinite'        => INF,
	'object'          => [ 'o' => new stdClass() ],
	'closure'         => static fn() => 1,
	'resource'        => fopen( 'php://memory', 'r' ),
	'many'            => array_fill( 0, 600_000, 1 ),
	'large'           => [ str_repeat( 'x', 17 * 1024 * 1024 ) ],
	'large in sum'    => array_fill( 0, 20, str_repeat( 'x', 1024 * 1024 ) ),
];
$deep = 1;
for ( $i = 0; $i < 100; ++$i ) {
	$deep = [ $deep ];
}
$refused['deep'] = $deep;
$self            = [];
$self['self']    = &$self;
$refused['self'] = $self;
foreach ( $refused as $label => $value ) {
	$e = caught( static fn() => Redactor::data( [ 'v' => $value ] ), $label );
	echo '  ', $e?->getMessage(), "\n";
}
// Positive controls just below the limits.
$fits = 1;
for ( $i = 0; $i < 62; ++$i ) {
	$fits = [ $fits ];
}
var_dump( Redactor::data( [ 'v' => $fits ] ) === [ 'v' => $fits ] );
var_dump( count( Redactor::data( array_fill( 0, 400_000, 1 ) ) ) );

// Arguments of a wrong type raise PHP's own TypeError.
foreach ( [ [ 'data', 5 ], [ 'data', null ], [ 'text', [] ], [ 'text', 5 ] ] as [ $method, $argument ] ) {
	try {
		Redactor::$method( $argument );
	} catch ( TypeError $e ) {
		echo get_class( $e ), ': ', $e->getMessage(), "\n";
	}
}
?>
--EXPECT--
bool(true)
{"a":{"5":"five"},"b":[],"c":[1,2]}
"x"
5
1
true
null
array(6) {
  [0]=>
  int(7382)
  [1]=>
  int(0)
  [2]=>
  int(-9007199254740992)
  [3]=>
  float(9007199254740994)
  [4]=>
  float(7382.5)
  [5]=>
  float(1.0E+300)
}
{"r":[1]}
not UTF-8: InvalidInputException wp_codebox_input_invalid
  data.v.a.b[0] is not valid UTF-8; give text, or base64 for bytes
key not UTF-8: InvalidInputException wp_codebox_input_invalid
  data.v.a has a key that is not valid UTF-8; use text keys
surrogate: InvalidInputException wp_codebox_input_invalid
  data.v[0] is not valid UTF-8; give text, or base64 for bytes
nan: InvalidInputException wp_codebox_input_invalid
  data.v.n is NAN or infinite; give a finite number
infinite: InvalidInputException wp_codebox_input_invalid
  data.v is NAN or infinite; give a finite number
object: InvalidInputException wp_codebox_input_invalid
  data.v.o must be null, a bool, a number, a string or an array
closure: InvalidInputException wp_codebox_input_invalid
  data.v must be null, a bool, a number, a string or an array
resource: InvalidInputException wp_codebox_input_invalid
  data.v must be null, a bool, a number, a string or an array
many: InvalidInputException wp_codebox_input_invalid
  data contains more than 500000 values; pass fewer
large: InvalidInputException wp_codebox_input_invalid
  data contains more than 16777216 bytes of text; pass less
large in sum: InvalidInputException wp_codebox_input_invalid
  data contains more than 16777216 bytes of text; pass less
deep: InvalidInputException wp_codebox_input_invalid
  data is nested deeper than 64 levels, or contains itself; flatten it
self: InvalidInputException wp_codebox_input_invalid
  data is nested deeper than 64 levels, or contains itself; flatten it
bool(true)
int(400000)
TypeError: Invalid value given for argument `data`.
TypeError: Invalid value given for argument `data`.
TypeError: Invalid value given for argument `text`.
TypeError: Invalid value given for argument `text`.
