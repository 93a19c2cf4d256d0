<?php
/**
 * Unit tests of classes that work without the native extension.
 */

declare(strict_types=1);

use WPCodebox\Apply\ApplyResult;
use WPCodebox\Apply\ApplyTargets;
use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Cli\Console;
use WPCodebox\Cli\FlagList;
use WPCodebox\Cli\Quantity;
use WPCodebox\Failure;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\Site;
use WPCodebox\Model\Label;
use WPCodebox\PlainText;
use WPCodebox\Run\GroupRow;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$refused = static function ( callable $call ) use ( $t ): string {
		try {
			$call();
		} catch ( Failure $failure ) {
			return $failure->error_code;
		}
		return 'nothing was refused';
	};

	$t->test(
		'the message of a host plugin keeps its letters and loses secrets, markup and control characters',
		static function () use ( $t ): void {
			$of = static fn( mixed $text ): string => Label::sentence( $text, [ '', 'K3y' ], 'Für diesen Benutzer nicht.' );
			$t->same( [ 'Für diesen Benutzer nicht.', 'Für diesen Benutzer nicht.' ], [ $of( null ), $of( 'Für diesen Benutzer nicht.' ) ] );
			$t->same( [ 'Größe: [redacted], 鍵がない', '', 'a b b' ], [ $of( "Größe: K3y, 鍵がない\n" ), $of( [] ), $of( "a\x1b<b>\u{202e}b" ) ] );
			$t->same( 200, mb_strlen( $of( str_repeat( 'ü', 300 ) ) ) );
		}
	);
	$t->test(
		'only Console and Table write to the streams of the command line, so all text loses characters that control a terminal',
		static function () use ( $t ): void {
			$writing = [];
			foreach ( glob( getenv( 'TEST_ROOT' ) . '/wp-cli/*.php' ) as $file ) {
				if ( 1 === preg_match( '/\bSTD(?:OUT|ERR)\b(?! \) \) \{)|\becho\b|\bprintf\(|WP_CLI::(?:line|log|success|warning|error|debug|print_value)\b/', (string) preg_replace( '#^\s*(\*|//|/\*).*$|\'[^\']*\'#m', '', (string) file_get_contents( $file ) ) ) ) {
					$writing[] = basename( $file, '.php' );
				}
			}
			$t->same( [ 'Console', 'Table' ], $writing );
		}
	);
	$t->test(
		'only the listed classes read runs, bundles and changes, and only abilities for reviewers use the services that return those of all users',
		static function () use ( $t ): void {
			$plugin = WP_PLUGIN_DIR . '/wp-codebox/';
			$found  = [];
			foreach ( new RegexIterator( new RecursiveIteratorIterator( new RecursiveDirectoryIterator( $plugin, FilesystemIterator::SKIP_DOTS ) ), '/\.php$/D' ) as $file ) {
				$code = preg_replace( '#^\s*(\*|//).*$#m', '', (string) file_get_contents( (string) $file ) );
				if ( 1 === preg_match( '/\b(Runs|Artifacts|Changes)::(get|list|events|cancel|files|diff|download|archive|export|preflight|discard|rollBack)\(/', $code ) ) {
					$found[] = basename( (string) $file, '.php' );
				}
			}
			sort( $found );
			// What the current user may see.
			$own = [ 'Access' ];
			// With an id that Access returned, or of a run that the request itself started.
			$given = [ 'BundleSeed', 'Preview', 'RunRegistry', 'RunService' ];
			// Of all users of the site.
			$all = [ '0-codebox-recovery', 'ArtifactService', 'DownloadService', 'ExportService', 'InterruptedChange', 'RollbackService' ];
			// Numbers, and the exporter of personal data, which WordPress calls for one user.
			$facts    = [ 'DebugInfo', 'PersonalData', 'SiteHealth' ];
			$expected = [ ...$own, ...$given, ...$all, ...$facts ];
			sort( $expected );
			$t->same( $expected, $found );

			$abilities = [];
			foreach ( glob( $plugin . 'abilities/definitions/*.php' ) as $file ) {
				$definition = require $file;
				$code       = (string) file_get_contents( $file );
				$whole      = 1 === preg_match( '/services->(artifacts|applies|audit|downloads|exports|reviews|rollbacks|stages)->/', $code );
				if ( $whole && ( isset( $definition['scope'] ) || [] !== array_diff( (array) $definition['capability'], [ Capabilities::REVIEW, Capabilities::APPLY ] ) ) ) {
					$abilities[] = basename( $file, '.php' );
				}
			}
			$t->same( [], $abilities );
		}
	);
	$t->test(
		'the screen can translate every summary of a run',
		static function () use ( $t ): void {
			$root   = getenv( 'TEST_ROOT' );
			$screen = (string) file_get_contents( "$root/plugin-php/assets/screen/text.js" );
			preg_match_all( '/Self::(\w+) => \{?\s*"([^"]+)"/', (string) file_get_contents( "$root/ext/core/contracts/src/summary.rs" ), $found, PREG_SET_ORDER );
			$t->true( count( $found ) > 10, 'the sentences of the runner were not found' );
			foreach ( $found as [ , $code, $text ] ) {
				$t->contains( sprintf( "case '%s':\n\t\t\t\treturn __( '%s', 'codebox' );", strtolower( (string) preg_replace( '/(?<!^)[A-Z]/', '_$0', $code ) ), $text ), $screen );
			}
		}
	);
	$t->test(
		'durations and sizes are parsed with their units, and invalid ones are refused',
		static function () use ( $t, $refused ): void {
			foreach ( [ '90s' => 90000, '15m' => 900000, '1h' => 3600000, '1d' => 86400000, '500ms' => 500, '0s' => 0 ] as $text => $expected ) {
				$t->same( $expected, Quantity::milliseconds( 'timeout', (string) $text ) );
			}
			foreach ( [ '4096' => 4096, '1K' => 1024, '512M' => 536870912, '1g' => 1073741824, '2GiB' => 2147483648, '1MB' => 1048576 ] as $text => $expected ) {
				$t->same( $expected, Quantity::bytes( 'memory', (string) $text ) );
			}
			foreach ( [ '', '90', '-1s', '1w', '1.5h', 'soon' ] as $text ) {
				$t->same( 'wp_codebox_input_invalid', $refused( static fn() => Quantity::milliseconds( 'timeout', $text ) ), $text );
			}
			foreach ( [ '', '-1', '1T', '12 34' ] as $text ) {
				$t->same( 'wp_codebox_input_invalid', $refused( static fn() => Quantity::bytes( 'memory', $text ) ), $text );
			}
		}
	);
	$t->test(
		'a file name is printed on one line, quoted like git does if it has hidden characters',
		static function () use ( $t ): void {
			foreach ( [
				'/workspace/a b é 価.txt' => '/workspace/a b é 価.txt',
				"/workspace/a\nb"         => '"/workspace/a\nb"',
				"/é\e[2J"                 => '"/é\033[2J"',
				"/a\u{202E}b"             => '"/a\342\200\256b"',
				'/a"b'                    => '"/a\"b"',
				'/a\b'                    => '"/a\\\\b"',
				'"/a\377b"'               => '"/a\377b"',
			] as $path => $listed ) {
				$t->same( $listed, PlainText::file_name( $path ) );
			}
		}
	);
	$t->test(
		'a flag takes a comma-separated or a JSON list, and an invalid list is refused',
		static function () use ( $t, $refused ): void {
			$t->same( [ 'a', 'b' ], FlagList::split( '--x', 'a, b,' ) );
			$t->same( [ 'a,b', 'c' ], FlagList::split( '--x', '["a,b","c"]' ) );
			$t->same( [ 'a,b' ], FlagList::one_or_json( '--x', 'a,b' ) );
			$t->same( [], FlagList::json_object( '--x', '{}' ) );
			foreach ( [ '[1]', '[', '{"a":1}' ] as $text ) {
				$t->same( '{' === $text[0] ? 'nothing was refused' : 'wp_codebox_input_invalid', $refused( static fn() => FlagList::split( '--x', $text ) ), $text );
			}
			foreach ( [ '[]', '', 'null', '"x"', '{' ] as $text ) {
				$t->same( 'wp_codebox_input_invalid', $refused( static fn() => FlagList::json_object( '--x', $text ) ), $text );
			}
		}
	);
	$t->test(
		'text from a guest cannot send control sequences to the terminal',
		static function () use ( $t ): void {
			$t->same( "a[31mred[0m\tb\nc", PlainText::of( "a\e[31mred\e[0m\tb\nc\r\x07\x7f" ) );
			$t->same( 'evil txt.php', PlainText::of( "evil \u{202e}txt.php\u{9b}" ) );
			$t->same( 'caf?', PlainText::of( "caf\xe9" ) );
			$t->same( 'naïve ☃', PlainText::of( 'naïve ☃' ) );
		}
	);
	$t->test(
		'hidden characters are removed from text of a guest, and the list of them is the same as in the runner',
		static function () use ( $t ): void {
			$list = strstr( (string) file_get_contents( getenv( 'TEST_ROOT' ) . '/ext/core/contracts/src/terminal_text.rs' ), 'const HIDDEN' );
			preg_match_all( "/\('\\\\u\{([0-9a-f]+)\}', '\\\\u\{([0-9a-f]+)\}'\)/", (string) strstr( $list, '];', true ), $rows, PREG_SET_ORDER );
			$hidden = [];
			foreach ( $rows as [ , $first, $last ] ) {
				$hidden += array_fill_keys( range( hexdec( $first ), hexdec( $last ) ), true );
			}
			foreach ( [ 0x00, 0x1b, 0x9b, 0xad, 0x61c, 0x200b, 0x200e, 0x200f, 0x2028, 0x202a, 0x202e, 0x2060, 0x2066, 0x2069, 0x3164, 0xfe0f, 0xfeff, 0xe0041 ] as $code ) {
				$t->true( isset( $hidden[ $code ] ), sprintf( 'U+%04X is in no list', $code ) );
			}
			// Compares in blocks, so that the message names the block that differs.
			for ( $block = 0; $block < 0x110000; $block += 0x1000 ) {
				$codes  = array_diff( range( $block, $block + 0xfff ), 0xd000 === $block ? range( 0xd800, 0xdfff ) : [] );
				$text   = static fn( array $codes ): string => implode( '', array_map( 'mb_chr', $codes ) );
				$wanted = $text( array_filter( $codes, static fn( int $code ): bool => ! isset( $hidden[ $code ] ) ) );
				$t->true( PlainText::of( $text( $codes ) ) === $wanted, sprintf( 'the lists differ between U+%04X and U+%04X', $block, $block + 0xfff ) );
			}
			// The must-use plugin loads no file of the plugin, so it has a copy.
			$listed = static fn( string $file ): string => (string) strstr( (string) strstr( (string) file_get_contents( WP_PLUGIN_DIR . '/wp-codebox/' . $file ), 'private const HIDDEN' ), ';', true );
			$t->true( '' !== $listed( 'includes/PlainText.php' ), 'the list was not found' );
			$t->same( $listed( 'includes/PlainText.php' ), $listed( 'must-use/0-codebox-recovery.php' ) );
			$said = [ "\u{e0041}k" => "a\u{200b}\u{202e}b \x7f☃𝄞\n" ];
			$json = PlainText::json( (string) json_encode( $said, JSON_UNESCAPED_UNICODE ) );
			$t->same( '{"\udb40\udc41k":"a\u200b\u202eb \u007f☃𝄞\n"}', $json );
			$t->same( $said, json_decode( $json, true ) );
		}
	);
	$t->test(
		'documents escape hidden characters in JSON and tables remove them, on a terminal and in a pipe',
		static function () use ( $t ): void {
			$hostile = "a\u{202e}b\u{200b}c\u{9b}☃";
			$php     = [
				'json'  => '( new WPCodebox\Cli\Console() )->document( [ "k" => getenv( "HOSTILE" ) ], "json" );',
				'yaml'  => '( new WPCodebox\Cli\Console() )->document( [ "k" => getenv( "HOSTILE" ) ], "yaml" );',
				'event' => '( new WPCodebox\Cli\Console() )->json( [ "k" => getenv( "HOSTILE" ) ] );',
				'rows'  => '( new WPCodebox\Cli\Table() )->print( [ [ "k" => getenv( "HOSTILE" ) ] ], [ "k" ], "k", [ "format" => "yaml" ] );',
				'table' => '( new WPCodebox\Cli\Table() )->print( [ [ "k" => getenv( "HOSTILE" ) ] ], [ "k" ], "k", [ "format" => "table" ] );',
				'csv'   => '( new WPCodebox\Cli\Table() )->print( [ [ "k" => getenv( "HOSTILE" ) ] ], [ "k" ], "k", [ "format" => "csv" ] );',
			];
			$program = 'foreach ( ' . var_export( $php, true ) . ' as $name => $code ) { echo "<$name>"; eval( $code ); }';
			foreach ( [ [], [ 'terminal' => true ] ] as $options ) {
				[ $code, $shown, $err ] = $t->wp( [ 'eval', $program ], [ 'HOSTILE' => $hostile ], $options );
				$t->same( 0, $code, $err );
				$t->same( 0, preg_match( '/[\x{80}-\x{9f}\x{200b}\x{202e}]/u', $shown ), json_encode( $shown ) );
				$t->same( [ 2, 4 ], [ substr_count( $shown, 'a\u202eb\u200bc\u009b☃' ), substr_count( $shown, 'abc☃' ) ], $shown );
			}
		}
	);
	$t->test(
		'the result of an adapter must match its schema and name only approved files',
		static function () use ( $t ): void {
			$good  = [
				'schema'          => 'wp-codebox/apply-result/v1',
				'adapter'         => 'a',
				'status'          => 'applied',
				'audit_reference' => 'r',
				'target'          => [ 'd' => 1 ],
				'applied_files'   => [ '/x' ],
			];
			$check = static function ( mixed $answer ): string {
				try {
					( new ApplyResult() )->check( $answer, [ '/x', '/y' ] );
				} catch ( Failure $failure ) {
					return $failure->error_code . ' ' . $failure->http_status;
				}
				return 'accepted';
			};
			$t->same( 'accepted', $check( $good ) );
			$t->same( 'accepted', $check( [ 'target' => (object) [ 'd' => 1 ] ] + $good ) );
			$t->same( 'wp_codebox_apply_adapter_missing 501', $check( null ) );
			$t->same( 'own_code 418', $check( new WP_Error( 'own_code', 'no', [ 'status' => 418 ] ) ) );
			$t->same( 'own_code 500', $check( new WP_Error( 'own_code', 'no' ) ) );
			foreach ( [
				'text',
				true,
				[],
				[ 'schema' => 'wp-codebox/apply-result/v2' ] + $good,
				[ 'adapter' => ' ' ] + $good,
				[ 'status' => 1 ] + $good,
				[ 'audit_reference' => '' ] + $good,
				[ 'target' => [] ] + $good,
				[ 'target' => (object) [] ] + $good,
				[ 'target' => [ 'list' ] ] + $good,
				[ 'applied_files' => 'x' ] + $good,
				[ 'applied_files' => [ 1 ] ] + $good,
				[ 'applied_files' => [ '/not-approved' ] ] + $good,
			] as $bad ) {
				$t->same( 'wp_codebox_apply_result_invalid 502', $check( $bad ), (string) json_encode( $bad ) );
			}
		}
	);
	$t->test(
		'a slug is looked up among installed code and never joined to a path',
		static function () use ( $t, $refused ): void {
			$code = new InstalledCode();
			$t->same( '/wordpress/wp-content/plugins/sample', $code->plugin_mount( 'sample' )['target'] );
			$t->same( realpath( WP_PLUGIN_DIR . '/sample' ), $code->plugin_mount( 'sample' )['source'] );
			foreach ( [ '..', '../sample', 'sample/..', '.', 'nope', '' ] as $slug ) {
				$t->same( 'wp_codebox_mount_source_invalid', $refused( static fn() => $code->plugin_mount( $slug ) ), $slug );
				$t->same( 'wp_codebox_mount_source_invalid', $refused( static fn() => $code->theme_mount( $slug ) ), $slug );
			}
			foreach ( [ 'hello', 'hello.php' ] as $single ) {
				try {
					$code->plugin_mount( $single );
					$t->true( false, 'a single file was accepted' );
				} catch ( Failure $failure ) {
					$t->contains( 'move hello.php to hello/hello.php', $failure->getMessage() );
				}
			}
			$t->same( 'sample', $code->mount_of( WP_PLUGIN_DIR . '/sample/inc' )['metadata']['slug'] );
			$t->same( null, $code->mount_of( WP_CONTENT_DIR ) );
			$t->same( 'theme', $code->mount_of( get_theme_root() . '/twentytwentyfive' )['metadata']['kind'] );
		}
	);
	$t->test(
		'the row of a failed task is valid JSON, whatever error a host plugin returned',
		static function () use ( $t ): void {
			$row = GroupRow::failed( Failure::from_wp_error( new WP_Error( 'of_a_plugin', "no \xff", [ 'what' => new ArrayObject( [ "\xfe" ] ), 'size' => NAN, 'status' => 403 ] ) ) );
			$t->same( [ 'of_a_plugin', "no \u{FFFD}", 1 ], [ $row['error']['code'], $row['error']['message'], $row['exit_code'] ] );
			$t->true( is_string( json_encode( $row ) ) && [] === array_filter( $row['error']['data'], 'is_object' ), 'the row cannot be encoded as JSON' );
		}
	);
	$t->test(
		'a path lies within a root only if whole path segments match',
		static function () use ( $t ): void {
			$t->same( [ true, true, false, false ], [ Site::is_within( '/a', [ '/a' ] ), Site::is_within( '/a/b', [ '/x', '/a' ] ), Site::is_within( '/ab', [ '/a' ] ), Site::is_within( '/', [ '/a' ] ) ] );
		}
	);
	$t->test(
		'the list of denied mount sources contains the site directory itself',
		static function () use ( $t ): void {
			$site = new Site( new InstalledCode() );
			$t->same( [], array_diff( [ realpath( ABSPATH ), realpath( WP_CONTENT_DIR ), realpath( WP_CONTENT_DIR ) . '/uploads' ], $site->denied() ) );
			$t->same( 1, preg_match( '/^site-1-[0-9a-f]{12}$/', $site->id() ) );
		}
	);
	$t->test(
		'the targets of 50,000 approved files are resolved in less than two seconds of processor time',
		static function () use ( $t ): void {
			$targets = new ApplyTargets( new InstalledCode(), new Site( new InstalledCode() ) );
			$seconds = static fn(): float => array_sum( array_map( static fn( string $kind ): float => getrusage()[ "ru_$kind.tv_sec" ] + getrusage()[ "ru_$kind.tv_usec" ] / 1e6, [ 'utime', 'stime' ] ) );
			foreach ( [ 1000, 10000, 50000 ] as $count ) {
				$mount = '/wordpress/wp-content/plugins/sample';
				$files = array_map(
					static fn( int $number ): array => [
						'path'         => sprintf( '%s/d%03d/f%06d.php', $mount, $number / 1000, $number ),
						'relativePath' => sprintf( 'd%03d/f%06d.php', $number / 1000, $number ),
						'mountTarget'  => $mount,
					],
					range( 0, $count - 1 )
				);
				$began = $seconds();
				try {
					$targets->resolve( [ 'changed_files' => $files, 'directory' => '/none' ], array_column( $files, 'path' ), [], Authority::Operator );
					$code = '';
				} catch ( Failure $failure ) {
					$code = $failure->error_code;
				}
				$took = $seconds() - $began;
				// Every file was looked up; the bundle has no record of its mounts.
				$t->same( 'wp_codebox_apply_target_mismatch', $code );
				if ( false !== getenv( 'TEST_SAMPLES' ) ) {
					file_put_contents( (string) getenv( 'TEST_SAMPLES' ), wp_json_encode( [ 'files' => $count, 'targets_ms' => round( $took * 1000, 1 ) ] ) . "\n", FILE_APPEND );
				}
			}
			$t->true( $took < 2, "$took s" );
		}
	);
};
