<?php
/**
 * Finds the plugins whose code names an option or a table.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/tables.php';

/**
 * Lists options and tables with the plugins in whose PHP files their names occur.
 */
final class Ownership {
	/** Maximum number of listed options. */
	private const OPTIONS = 2000;
	/** Maximum number of PHP bytes read per plugin. */
	private const BYTES = 16 * 1024 * 1024;
	/** Maximum number of PHP bytes read in total. */
	private const ALL_BYTES = 64 * 1024 * 1024;

	/**
	 * Returns the options and tables, each with the plugins that name it.
	 *
	 * @return array<string,mixed>
	 */
	public function document(): array {
		global $wpdb;
		$core    = $this->core_options();
		$options = array();
		foreach ( $wpdb->get_results( "SELECT option_name, LENGTH(option_value) AS bytes, SUBSTR(option_value, 1, 200) AS beginning, autoload FROM $wpdb->options ORDER BY option_name LIMIT 5000", ARRAY_A ) as $row ) {
			$name = (string) $row['option_name'];
			if ( ! isset( $core[ $name ] ) && ! str_starts_with( $name, '_transient' ) && ! str_starts_with( $name, '_site_transient' ) && ! str_starts_with( $name, 'widget_' ) && count( $options ) < self::OPTIONS ) {
				$secret           = is_secret_name( $name );
				$options[ $name ] = array(
					'name'     => mb_scrub( $name, 'UTF-8' ),
					'autoload' => (string) $row['autoload'],
					'secret'   => $secret,
				) + ( $secret ? array( 'value' => MASK ) : array(
					'kind'  => is_serialized( (string) $row['beginning'], false ) ? 'serialized' : ( is_numeric( $row['beginning'] ) ? 'number' : 'text' ),
					'bytes' => (int) $row['bytes'],
				) );
			}
		}
		$tables = array();
		foreach ( array_filter( table_names(), static fn ( string $table ): bool => ! is_core_table( $table ) ) as $table ) {
			$tables[ $table ] = array(
				'name' => $table,
				'rows' => (int) $wpdb->get_var( $wpdb->prepare( 'SELECT COUNT(*) FROM %i', $table ) ),
			);
		}
		$all    = 0;
		$rows   = array();
		$owners = array();
		foreach ( get_plugins() as $file => $head ) {
			$found  = $this->found( (string) $file, array_keys( $options ), array_keys( $tables ), $all );
			$rows[] = array(
				'plugin' => (string) $file,
				'name'   => cut( (string) $head['Name'], 200 ),
				'active' => is_plugin_active( $file ),
			) + $found;
			foreach ( array( ...$found['options'], ...$found['tables'] ) as $name ) {
				$owners[ $name ][] = (string) $file;
			}
		}
		$owned = static fn ( array $row ): array => $row + array( 'plugins' => $owners[ $row['name'] ] ?? array() );
		return array(
			'readOnly' => true,
			'options'  => array_map( $owned, array_values( $options ) ),
			'tables'   => array_map( $owned, array_values( $tables ) ),
			'plugins'  => listing( $rows, array( 'plugin' ), 200 )['items'],
			'totals'   => array(
				'options'   => count( $options ),
				'tables'    => count( $tables ),
				'plugins'   => count( $rows ),
				'unclaimed' => count( array_diff_key( $options + $tables, $owners ) ),
			),
		);
	}

	/**
	 * Returns which of the names occur in the PHP files of one plugin.
	 *
	 * @param string       $file    Main file of the plugin.
	 * @param list<string> $options Option names.
	 * @param list<string> $tables  Table names.
	 * @param int          $all     Bytes read so far.
	 * @return array{options: list<string>, tables: list<string>, whole: bool}
	 */
	private function found( string $file, array $options, array $tables, int &$all ): array {
		global $wpdb;
		$found = array(
			'options' => array(),
			'tables'  => array(),
		);
		$bytes = 0;
		$whole = true;
		foreach ( $this->files( WP_PLUGIN_DIR . '/' . $file ) as $path ) {
			$size = (int) filesize( $path );
			if ( $bytes + $size > self::BYTES || $all + $size > self::ALL_BYTES ) {
				$whole = false;
				continue;
			}
			$bytes += $size;
			$all   += $size;
			$code   = (string) file_get_contents( $path );
			foreach ( $options as $name ) {
				if ( str_contains( $code, "'$name'" ) || str_contains( $code, "\"$name\"" ) ) {
					$found['options'][ $name ] = $name;
				}
			}
			foreach ( $tables as $table ) {
				$bare = str_starts_with( $table, $wpdb->prefix ) ? substr( $table, strlen( $wpdb->prefix ) ) : $table;
				if ( 1 === preg_match( '/(?<![A-Za-z0-9])' . preg_quote( $bare, '/' ) . '(?![A-Za-z0-9_])/', $code ) ) {
					$found['tables'][ $table ] = $table;
				}
			}
		}
		return array(
			'options' => sorted_texts( $found['options'] ),
			'tables'  => sorted_texts( $found['tables'] ),
			'whole'   => $whole,
		);
	}

	/**
	 * Returns the PHP files of one plugin, without symlinks and vendored libraries.
	 *
	 * @param string $main Main file of the plugin.
	 * @return iterable<string>
	 */
	private function files( string $main ): iterable {
		if ( dirname( $main ) === WP_PLUGIN_DIR ) {
			yield $main;
			return;
		}
		$inner = new \RecursiveCallbackFilterIterator(
			new \RecursiveDirectoryIterator( dirname( $main ), \FilesystemIterator::SKIP_DOTS ),
			static fn ( \SplFileInfo $entry ): bool => ! $entry->isLink() && ! in_array( $entry->getFilename(), array( 'node_modules', '.git' ), true )
		);
		$count = 0;
		foreach ( new \RecursiveIteratorIterator( $inner ) as $entry ) {
			if ( $entry->isFile() && 'php' === $entry->getExtension() && ++$count <= 5000 ) {
				yield $entry->getPathname();
			}
		}
	}

	/**
	 * Returns the names of WordPress's own options: those that occur in WordPress's code.
	 *
	 * @return array<string,int>
	 */
	private function core_options(): array {
		$code = '';
		foreach ( array( 'wp-admin/includes/schema.php', 'wp-admin/includes/upgrade.php', 'wp-includes/option.php', 'wp-includes/cron.php', 'wp-includes/theme.php', 'wp-includes/class-wp-roles.php', 'wp-includes/class-wp-rewrite.php', 'wp-admin/includes/update-core.php', 'wp-includes/widgets.php', 'wp-includes/class-wp-theme.php', 'wp-includes/class-wp-recovery-mode.php', 'wp-includes/class-wp-recovery-mode-key-service.php', 'wp-admin/includes/plugin.php', 'wp-includes/functions.php' ) as $file ) {
			$code .= is_readable( ABSPATH . $file ) ? (string) file_get_contents( ABSPATH . $file ) : '';
		}
		preg_match_all( '/[\'"]([a-z][A-Za-z0-9_]{2,63})[\'"]/', $code, $found );
		$theme = 'theme_mods_' . get_option( 'stylesheet' );
		return array_flip( array_merge( $found[1], array( $GLOBALS['wpdb']->prefix . 'user_roles', $theme, 'fresh_site', 'recovery_keys', 'can_compress_scripts' ) ) );
	}
}
