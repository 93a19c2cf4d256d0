--TEST--
Redaction in text, in bytes and in nested data
--FILE--
<?php
require __DIR__ . '/fixtures/lib.php';
use WPCodebox\Native\Redactor;

$token = 'ghp_0123456789abcdefghijklmnop';
echo Redactor::text( "a $token b" ), "\n";
echo Redactor::text( 'plain text stays' ), "\n";
echo Redactor::text( 'it is hunter2hunter2 here', [ 'hunter2hunter2' ] ), "\n";
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
