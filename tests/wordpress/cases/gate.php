<?php
/**
 * The plugin without the native extension: no fatal error, and every message names the fix.
 */

declare(strict_types=1);

use WPCodebox\Admin\Notices;
use WPCodebox\Admin\SiteHealth;
use WPCodebox\DirectApply\RecoveryLink;
use WPCodebox\ExtensionGate;
use WPCodebox\Settings;
use WPCodebox\Tests\Harness;

return static function ( Harness $t ): void {
	$t->test(
		'without the extension abilities are registered and answer 503',
		static function () use ( $t ): void {
			$t->as( 'administrator' );
			foreach ( WP_Codebox_API::public_abilities() as $name => $about ) {
				// A session in the visitor's browser runs no program of this host.
				if ( in_array( 'browser-session:create', $about['scopes'], true ) ) {
					continue;
				}
				$error = wp_get_ability( $name )->execute( [] );
				$t->error( 'wp_codebox_extension_missing', 503, $error );
				$t->contains( 'extension=wp_codebox.so', implode( ' ', $error->get_error_data()['hints'] ) );
			}
			$t->error( 'wp_codebox_browser_assets_missing', 503, wp_get_ability( 'wp-codebox/create-browser-playground-session' )->execute( [ 'goal' => 'x' ] ) );
		}
	);
	$t->test(
		'without the extension Site Health and debug information report it as not loaded',
		static function () use ( $t ): void {
			$tests = apply_filters( 'site_status_tests', [ 'direct' => [] ] );
			$test  = call_user_func( $tests['direct']['wp_codebox_extension']['test'] );
			$t->same( [ 'critical', 'wp_codebox_extension' ], [ $test['status'], $test['test'] ] );
			$t->contains( 'extension=wp_codebox.so', html_entity_decode( $test['actions'], ENT_QUOTES ) );
			$t->contains( 'not loaded', apply_filters( 'debug_information', [] )['wp-codebox']['fields']['extension']['value'] );
		}
	);
	$t->test(
		'an administrator sees the notice about the missing extension, and an editor does not',
		static function () use ( $t ): void {
			require_once ABSPATH . 'wp-admin/includes/admin.php';
			$render = static function ( string $screen ) use ( $t ): string {
				set_current_screen( $screen );
				ob_start();
				( new Notices( new ExtensionGate( '0.1.0', str_repeat( 'a', 64 ) ), new Settings() ) )->render();
				return (string) ob_get_clean();
			};
			$t->as( 'administrator' );
			$t->contains( 'notice-error', $render( 'plugins' ) );
			// An error message may quote a text of a guest; without mbstring the notices must work as well.
			$reason = static fn( string $hidden ): string => "a{$hidden}b <i>";
			update_site_option( Settings::DIRECT_APPLY, true );
			update_option(
				RecoveryLink::UNSENT,
				[
					'address' => 'a@example.org',
					'reason'  => $reason( "\u{202e}\u{200b}\e[2J\u{9b}" ),
				]
			);
			try {
				$shown = $render( 'plugins' );
				$t->contains( esc_html( $reason( '[2J' ) ), $shown );
				$t->same( 0, preg_match( '/[\x00-\x08\x0b-\x1f\x7f-\x{9f}\p{Cf}]/u', $shown ), (string) json_encode( $shown ) );
			} finally {
				delete_option( RecoveryLink::UNSENT );
				update_site_option( Settings::DIRECT_APPLY, false );
			}
			$t->same( '', $render( 'edit-post' ) );
			$t->as( 'editor' );
			$t->same( '', $render( 'plugins' ) );
		}
	);
	foreach ( [
		[ 'codebox', 'run-agent-task', 'x', '--plugin=sample' ],
		[ 'codebox', 'artifacts', 'list' ],
		[ 'codebox', 'artifacts', 'get', 'run_1' ],
		[ 'codebox', 'artifacts', 'inspect', 'run_1' ],
		[ 'codebox', 'artifacts', 'diff', 'run_1' ],
		[ 'codebox', 'artifacts', 'preflight-apply', 'run_1', '--all' ],
		[ 'codebox', 'artifacts', 'apply', 'run_1', '--approved-files=/x' ],
		[ 'codebox', 'artifacts', 'discard', 'run_1' ],
		[ 'codebox', 'commands' ],
		[ 'codebox', 'policy', 'show' ],
		[ 'codebox', 'policy', 'validate', '--input-json={}' ],
	] as $command ) {
		$t->test(
			'wp ' . implode( ' ', $command ) . ' exits with 125',
			static function () use ( $t, $command ): void {
				[ $code, $out, $err ] = $t->wp( $command );
				$t->same( [ 125, '' ], [ $code, $out ] );
				$t->contains( 'Error: The PHP extension wp_codebox is not loaded in this PHP, so no sandbox can be started. (wp_codebox_extension_missing)', $err );
				$t->contains( '  - Put the line "extension=wp_codebox.so" into ', $err );
			}
		);
	}
	$t->test(
		'a failure with --format=json prints a document that matches the failure schema',
		static function () use ( $t ): void {
			[ $code, $out ] = $t->wp( [ 'codebox', 'commands', '--format=json' ] );
			$document       = json_decode( $out, true );
			$schema         = json_decode( (string) file_get_contents( getenv( 'TEST_ROOT' ) . '/dist/wp-codebox/abilities/schemas/cli-failure.v1.schema.json' ), true );
			$t->same( true, rest_validate_value_from_schema( $document, $schema, 'failure' ) );
			$t->same( [ 125, 125, 'wp_codebox_extension_missing' ], [ $code, $document['exit_code'], $document['error']['code'] ] );
		}
	);
	$t->test(
		'doctor without the extension prints its report and fails',
		static function () use ( $t ): void {
			[ $code, $out ] = $t->wp( [ 'codebox', 'doctor', '--format=json' ] );
			$document       = json_decode( $out, true );
			$t->same( [ 1, 'error', 'wp-codebox/doctor/v1' ], [ $code, $document['status'], $document['schema'] ] );
			$rows = array_column( $document['checks'], null, 'id' );
			$t->same( [ 'ok', 'error' ], [ $rows['wordpress']['status'], $rows['extension']['status'] ] );
			$t->contains( 'extension=wp_codebox.so', $rows['extension']['fix'] );
		}
	);
	foreach ( [
		[ 'WP_CODEBOX_FAKE_VERSION', '0.0.9', 'it is version 0.0.9, the plugin is version 0.1.0' ],
		[ 'WP_CODEBOX_FAKE_DIGEST', str_repeat( 'b', 64 ), 'its JSON schemas differ from those of the plugin' ],
	] as [ $name, $value, $reason ] ) {
		$t->test(
			"an extension with another value of $name is reported as stale",
			static function () use ( $t, $name, $value, $reason ): void {
				[ $code, $out, $err ] = $t->wp( [ 'codebox', 'commands' ], [ 'WP_CODEBOX_FAKE' => '1', $name => $value ] );
				$t->same( [ 125, '' ], [ $code, $out ] );
				$t->contains( '(wp_codebox_extension_stale)', $err );
				$t->contains( $reason, $err );
				$t->contains( 'Install the wp_codebox.so of release 0.1.0', $err );
				[ $code ] = $t->wp( [ 'codebox', 'commands' ], [ 'WP_CODEBOX_FAKE' => '1' ] );
				$t->same( 0, $code, 'positive control: a fitting one passes' );
			}
		);
	}
	$t->test(
		'every sentence of the plugin and every failure of a command is translatable',
		static function () use ( $t ): void {
			// Strings that are not sentences for a user: a name, CSS classes, formats and log entries.
			$others      = [ 'large-text code', 'Y-m-d H:i', '%s: %s. %s', 'Bearer ', 'learned ', 'component ', 'not recorded', 'schema %s is missing or broken', ', except some fields of the manifest', ', contents from a browser', 'window.wpCodeboxBrowserPage = ', 'private, immutable, max-age=', 'attachment; filename=', 'wp codebox browser-assets install codebox-browser.zip' ];
			$translators = [ '__', '_n', '_x', 'esc_html__', 'esc_attr__', 'esc_html_e' ];
			$bare        = [];
			$wrapped     = 0;
			$root        = WP_PLUGIN_DIR . '/wp-codebox/';
			foreach ( [ 'includes', 'wp-cli' ] as $part ) {
				foreach ( new RecursiveIteratorIterator( new RecursiveDirectoryIterator( $root . $part, FilesystemIterator::SKIP_DOTS ) ) as $file ) {
					$calls  = [];
					$before = '';
					foreach ( token_get_all( (string) file_get_contents( (string) $file ) ) as $token ) {
						[ $kind, $text, $line ] = is_array( $token ) ? $token : [ 0, $token, 0 ];
						if ( in_array( $text, [ '(', '[', '{', '${' ], true ) ) {
							$calls[] = '(' === $text ? $before : '';
						} elseif ( in_array( $text, [ ')', ']', '}' ], true ) ) {
							array_pop( $calls );
						}
						// Finds strings of several words, except HTML, SQL and messages of the error log.
						$is = in_array( $kind, [ T_CONSTANT_ENCAPSED_STRING, T_ENCAPSED_AND_WHITESPACE ], true ) && 1 === preg_match( '/\pL[,;:]? ./u', $text )
							&& 1 !== preg_match( '/^.<|^.(SELECT|INSERT|DELETE) /', $text ) && ! in_array( 'error_log', $calls, true ) && ! in_array( trim( $text, '\'"' ), $others, true );
						// SiteContent.php also runs without WordPress, where nothing translates its reasons.
						// The agent of a run reads English, so the answers of a parent tool are not translated.
						$is = $is && 'SiteContent.php' !== $file->getFilename();
						$is = $is && ! ( 'ParentTools.php' === $file->getFilename() && in_array( 'refused', $calls, true ) );
						$is = $is && ( 'includes' === $part || in_array( 'because', $calls, true ) && "' or '" !== $text );
						if ( $is && [] === array_intersect( $translators, $calls ) ) {
							$bare[] = substr( (string) $file, strlen( $root ) ) . ":$line $text";
						}
						$wrapped += (int) $is;
						if ( in_array( 'because', $calls, true ) && 'sprintf' === $text ) {
							$bare[] = substr( (string) $file, strlen( $root ) ) . ":$line sprintf() in a failure: Sentence::of() keeps its English for the audit log";
						}
						$before = in_array( $kind, [ T_WHITESPACE, T_COMMENT, T_DOC_COMMENT ], true ) ? $before : $text;
					}
				}
			}
			$t->true( $wrapped > 300, 'the sentences were not found' );
			$t->same( [], $bare );
		}
	);
	$t->test(
		'the translation template contains every translatable text of the plugin',
		static function () use ( $t ): void {
			$texts = static function ( string $file ): array {
				preg_match_all( '/^msg(?:id|id_plural|ctxt) .*$/m', (string) file_get_contents( $file ), $found );
				return $found[0];
			};
			// `cargo xtask dist plugin` makes the template with make-pot. A second parser finds the strings that make-pot cannot extract.
			$words  = static fn( string $text ): string => stripslashes( str_replace( '\\"', '"', $text ) );
			$listed = implode( "\n", $texts( WP_PLUGIN_DIR . '/wp-codebox/languages/codebox.pot' ) );
			$lost   = [];
			$read   = [ 'js' => 0, 'php' => 0 ];
			$tree   = static fn( string $path ): Iterator => new RecursiveIteratorIterator( new RecursiveDirectoryIterator( $path, FilesystemIterator::SKIP_DOTS ) );
			$files  = new AppendIterator();
			$files->append( $tree( WP_PLUGIN_DIR . '/wp-codebox' ) );
			// npm builds the workbench of browser sessions. Without it in dist/ its texts are not in the template.
			if ( is_file( getenv( 'TEST_ROOT' ) . '/dist/wp-codebox/assets/browser/workbench.js' ) ) {
				$read['ts'] = 0;
				$files->append( $tree( getenv( 'TEST_ROOT' ) . '/browser/src/workbench' ) );
			}
			foreach ( $files as $file ) {
				// i18n.ts declares the functions.
				if ( isset( $read[ $file->getExtension() ] ) && 'i18n.ts' !== $file->getFilename() ) {
					preg_match_all( "/(?<![\\w:>])(?:esc_html|esc_attr)?_[_enx]x?\\(\\s*(?:'((?:[^'\\\\]|\\\\.)*)'\\s*,|(.{0,60}))/", (string) file_get_contents( (string) $file ), $found, PREG_SET_ORDER );
					foreach ( $found as $call ) {
						++$read[ $file->getExtension() ];
						if ( isset( $call[2] ) || ! str_contains( $words( $listed ), '"' . $words( $call[1] ) . '"' ) ) {
							$lost[] = $file->getFilename() . ': ' . ( $call[2] ?? $call[1] );
						}
					}
				}
			}
			$t->same( [], $lost, 'run: cargo xtask dist' );
			$t->true( $read['js'] > 150 && $read['php'] > 300 && ( $read['ts'] ?? 101 ) > 100, 'the sources were not read: ' . json_encode( $read ) );
		}
	);
	$t->test(
		'the plugin does nothing with options of a newer format, and says so',
		static function () use ( $t ): void {
			$look = [ 'eval', 'do_action( "admin_notices" ); do_action( "activate_wp-codebox/wp-codebox.php" ); echo class_exists( "WPCodebox\Plugin", false ) ? "booted" : "idle", " ", get_option( "wp_codebox_format" );' ];
			$t->same( 'booted 1', substr( $t->wp( $look )[1], -8 ), 'positive control, and activation states the format' );
			update_site_option( 'wp_codebox_format', 2 );
			try {
				[ $code, $out, $err ] = $t->wp( $look );
				$t->same( [ 0, 'idle 2' ], [ $code, substr( $out, -6 ) ] );
				$t->contains( 'its options have the format 2, and this version reads formats up to 1. Install a version of Codebox newer than 0.1.0.', $out );
				$t->contains( 'Warning: Codebox does nothing', $err );
				$t->same( 1, $t->wp( [ 'codebox', 'commands' ] )[0] );
			} finally {
				delete_site_option( 'wp_codebox_format' );
			}
		}
	);
	$t->test(
		'uninstalling deletes the settings of the plugin',
		static function () use ( $t ): void {
			update_site_option( 'wp_codebox_default_agent', 'x' );
			define( 'WP_UNINSTALL_PLUGIN', 'wp-codebox/wp-codebox.php' );
			require WP_PLUGIN_DIR . '/wp-codebox/uninstall.php';
			$t->same( false, get_site_option( 'wp_codebox_default_agent', false ) );
		}
	);
};
