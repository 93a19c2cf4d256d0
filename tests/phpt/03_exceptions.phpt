--TEST--
Exceptions carry code, statuses, hints, data, and file and line of the caller
--INI--
wp_codebox.runner={PWD}/fixtures/fake-runner
wp_codebox.state_dir=/nonexistent-state
zend.exception_ignore_args=0
--FILE--
<?php
require __DIR__ . '/fixtures/lib.php';
use WPCodebox\Native\{Artifacts, Exception as E, Policy, Run};

function outer(): void {
	Run::start( ...request( '' ) );
}
try {
	outer();
} catch ( E $e ) {
	echo basename( $e->getFile() ), ':', $e->getLine(), "\n";
	echo preg_replace( '~/\S+/~', '', $e->getTraceAsString() ), "\n";
	var_dump( $e instanceof RuntimeException, $e->getCode(), $e->getPrevious(), $e->getMessage() );
	var_dump( $e->errorCode, $e->httpStatus, $e->exitStatus, $e->hints, $e->data );
	foreach ( [ 'errorCode', 'httpStatus', 'exitStatus', 'hints', 'data' ] as $name ) {
		try {
			$e->$name = null;
		} catch ( Error $error ) {
			echo $error->getMessage(), "\n";
		}
	}
}

$busy = caught( static fn() => Run::start( ...request( 'busy' ) ) );
var_dump( $busy->getMessage(), $busy->httpStatus, $busy->exitStatus, $busy->hints, $busy->data );

// `previous` and `finally` work as with any exception.
try {
	try {
		outer();
	} finally {
		throw new LogicException( 'next' );
	}
} catch ( LogicException $e ) {
	var_dump( get_class( $e->getPrevious() ) );
}

// The base class can be extended and constructed; the subclasses are final.
class Mine extends E {
}
$mine = new Mine( 'm', 7, new Exception( 'p' ) );
var_dump( $mine->getMessage(), $mine->getCode(), $mine->getPrevious()->getMessage(), $mine->getLine() === __LINE__ - 1 );

$kinds = [];
foreach ( get_declared_classes() as $class ) {
	if ( get_parent_class( $class ) === E::class && $class !== 'Mine' ) {
		$kinds[] = substr( $class, 17 ) . ( ( new ReflectionClass( $class ) )->isFinal() ? ' final' : '' );
	}
}
sort( $kinds );
echo implode( "\n", $kinds ), "\n";

caught( static fn() => Policy::assertCommand( Policy::defaults( [] ), 'wordpress.run-php' ) );
caught( static fn() => Artifacts::list( 'site-1' ) );
caught( static fn() => Artifacts::verify( '/nonexistent' ) );
?>
--EXPECTF--
03_exceptions.php:6
#0 03_exceptions.php(6): WPCodebox\Native\Run::start(Object(SensitiveParameterValue), Object(SensitiveParameterValue))
#1 03_exceptions.php(9): outer()
#2 {main}
bool(true)
int(0)
NULL
string(%d) "no goal was given; %s"
string(23) "wp_codebox_task_missing"
int(400)
int(1)
array(0) {
}
array(0) {
}
Cannot modify readonly property WPCodebox\Native\Exception::$errorCode
Cannot modify readonly property WPCodebox\Native\Exception::$httpStatus
Cannot modify readonly property WPCodebox\Native\Exception::$exitStatus
Cannot modify readonly property WPCodebox\Native\Exception::$hints
Cannot modify readonly property WPCodebox\Native\Exception::$data
UnavailableException wp_codebox_busy
string(14) "Too many runs."
int(429)
int(125)
array(1) {
  [0]=>
  string(5) "Wait."
}
array(1) {
  ["limit"]=>
  int(2)
}
string(38) "WPCodebox\Native\InvalidInputException"
string(1) "m"
int(7)
string(1) "p"
bool(true)
ConflictException final
DeniedException final
IntegrityException final
InternalException final
InvalidInputException final
LimitException final
NotFoundException final
UnavailableException final
DeniedException runtime-command-disallowed
UnavailableException wp_codebox_state_dir_invalid
NotFoundException wp_codebox_artifact_not_found
