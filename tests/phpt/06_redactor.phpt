--TEST--
Redactor removes values from text, from bytes and from nested data
--FILE--
<?php
require __DIR__ . '/fixtures/lib.php';
use WPCodebox\Native\Redactor;

$token = 'ghp_0123456789abcdefghijklmnop';
echo Redactor::text( "a $token b" ), "\n";
echo Redactor::text( 'plain text stays' ), "\n";
echo Redactor::text( 'it is hunter2hunter2 here', [ 'hunter2hunter2' ] ), "\n";
$secret = 'pä/"ss\'wörd & more';
foreach ( [ $secret, rawurlencode( $secret ), urlencode( $secret ), json_encode( $secret ), json_encode( $secret, JSON_HEX_QUOT | JSON_HEX_APOS | JSON_HEX_AMP ), htmlspecialchars( $secret ), quoted_printable_encode( $secret ), bin2hex( $secret ), addslashes( $secret ) ] as $written ) {
	echo trim( Redactor::text( $written, [ $secret ] ), '"' ), "\n";
}
$wrapped = chunk_split( base64_encode( "xy{$secret}z" ), 16 );
echo str_contains( Redactor::text( json_encode( $wrapped ), [ $secret ] ), substr( json_encode( $wrapped ), 8, 16 ) ) ? 'base64 lost' : 'base64 found', "\n";
echo bin2hex( Redactor::text( "\xff\x00$token\xfe" ) ) === bin2hex( "\xff\x00[REDACTED:github-token]\xfe" ) ? 'bytes kept' : 'bytes lost', "\n";
echo json_encode(
	Redactor::data(
		[
			'Api-Key'       => 'abc',
			'password'      => [ 'nested' => 1 ],
			'access_token'  => 42,
			'has_password'  => true,
			'token'         => null,
			'secret_env'    => [ 'NAME' ],
			'list'          => [ "x $token", 'hunter2hunter2', 7 ],
			'author'        => 'Ann',
			"key $token"    => 'v',
		],
		[ 'hunter2hunter2' ]
	),
	JSON_PRETTY_PRINT
), "\n";
var_dump( Redactor::data( [] ), Redactor::text( '' ) );
caught( static fn() => Redactor::data( [ "\xff" ] ) );
caught( static fn() => Redactor::text( 'x', [ [ 'no' ] ] ) );
?>
--EXPECT--
a [REDACTED:github-token] b
plain text stays
it is [REDACTED:configured-secret-value] here
[REDACTED:configured-secret-value]
[REDACTED:configured-secret-value]
[REDACTED:configured-secret-value]
[REDACTED:configured-secret-value]
[REDACTED:configured-secret-value]
[REDACTED:configured-secret-value]
[REDACTED:configured-secret-value]
[REDACTED:configured-secret-value]
[REDACTED:configured-secret-value]
base64 found
bytes kept
{
    "Api-Key": "[redacted]",
    "password": "[redacted]",
    "access_token": "[redacted]",
    "has_password": true,
    "token": null,
    "secret_env": [
        "NAME"
    ],
    "list": [
        "x [REDACTED:github-token]",
        "[REDACTED:configured-secret-value]",
        7
    ],
    "author": "Ann",
    "key [REDACTED:github-token]": "v"
}
array(0) {
}
string(0) ""
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
