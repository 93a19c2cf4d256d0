<?php
/**
 * Reading access to the database of a WordPress site.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Host;

/**
 * Runs SELECT statements with values separate from their text.
 */
final class Site_Database {

	/**
	 * Creates the object.
	 *
	 * @param \PDO   $connection Connection to the database.
	 * @param string $prefix     Prefix of the site's tables.
	 */
	private function __construct( private readonly \PDO $connection, public readonly string $prefix ) {}

	/**
	 * Opens the database of a site.
	 *
	 * @param Site_Config $config Settings of the site.
	 * @throws \RuntimeException When it cannot be opened.
	 */
	public static function open( Site_Config $config ): self {
		$dropin = $config->content . '/db.php';
		$text   = is_file( $dropin ) ? (string) file_get_contents( $dropin, false, null, 0, 65536 ) : '';
		$sqlite = str_contains( strtolower( $text ), 'sqlite' );
		if ( '' !== $text && ! $sqlite ) {
			throw new \RuntimeException( 'its database is opened by a drop-in, wp-content/db.php, whose code is not run to read the site' );
		}
		$connection = $sqlite ? self::sqlite( $config ) : self::mysql( $config );
		$connection->setAttribute( \PDO::ATTR_ERRMODE, \PDO::ERRMODE_EXCEPTION );
		$connection->setAttribute( \PDO::ATTR_STRINGIFY_FETCHES, true );
		return new self( $connection, $config->prefix );
	}

	/**
	 * Opens a copy of the SQLite database.
	 *
	 * @param Site_Config $config Settings of the site.
	 * @throws \RuntimeException When it cannot be copied.
	 */
	private static function sqlite( Site_Config $config ): \PDO {
		$directory = rtrim( $config->constant( 'DB_DIR', $config->content . '/database/' ), '/' );
		$file      = $directory . '/' . $config->constant( 'DB_FILE', '.ht.sqlite' );
		$scratch   = self::scratch();
		if ( ! is_file( $file ) || ! copy( $file, "$scratch/site.sqlite" ) ) {
			throw new \RuntimeException( 'its SQLite database cannot be read' );
		}
		// Recent changes may be in the write-ahead log only.
		if ( is_file( "$file-wal" ) && ! copy( "$file-wal", "$scratch/site.sqlite-wal" ) ) {
			throw new \RuntimeException( 'the write-ahead log of its SQLite database cannot be read' );
		}
		return new \PDO( "sqlite:$scratch/site.sqlite" );
	}

	/**
	 * Returns a new directory that only this user can read; it is removed at the end of the program.
	 *
	 * @throws \RuntimeException When it cannot be made.
	 */
	private static function scratch(): string {
		$scratch = sys_get_temp_dir() . '/codebox-' . bin2hex( random_bytes( 16 ) );
		if ( ! mkdir( $scratch, 0700 ) ) {
			throw new \RuntimeException( 'the temporary directory of this host cannot be written' );
		}
		register_shutdown_function(
			static function () use ( $scratch ): void {
				array_map( 'unlink', (array) glob( "$scratch/*" ) );
				rmdir( $scratch );
			}
		);
		return $scratch;
	}

	/**
	 * Opens the MySQL or MariaDB database.
	 *
	 * @param Site_Config $config Settings of the site.
	 * @throws \RuntimeException When it cannot be opened.
	 */
	private static function mysql( Site_Config $config ): \PDO {
		if ( ! in_array( 'mysql', \PDO::getAvailableDrivers(), true ) ) {
			throw new \RuntimeException( 'its database is MySQL, and the PHP of this host lacks the extension pdo_mysql' );
		}
		$host = $config->constant( 'DB_HOST', 'localhost' );
		list( $name, $port ) = explode( ':', $host, 2 ) + array( '', '' );
		$place = str_starts_with( $port, '/' ) ? "unix_socket=$port" : "host=$name" . ( '' === $port ? '' : ";port=$port" );
		try {
			return new \PDO(
				"mysql:$place;dbname=" . $config->constant( 'DB_NAME' ) . ';charset=utf8mb4',
				$config->constant( 'DB_USER' ),
				$config->constant( 'DB_PASSWORD' ),
				array( \PDO::ATTR_TIMEOUT => 5 )
			);
		} catch ( \PDOException $thrown ) {
			// The message of the server can contain the name of the database user.
			throw new \RuntimeException( 'its MySQL server refused the connection (error ' . $thrown->getCode() . ')' );
		}
	}

	/**
	 * Returns the rows of a SELECT statement; `{name}` stands for the site's table of this name.
	 *
	 * @param string                    $sql    Statement.
	 * @param list<int|string|\Stringable> $values Values of its placeholders.
	 * @return list<array<string, string|null>>
	 */
	public function rows( string $sql, array $values = array() ): array {
		$sql       = (string) preg_replace( '/\{(\w+)\}/', $this->prefix . '$1', $sql );
		$statement = $this->connection->prepare( $sql );
		$statement->execute( $values );
		return $statement->fetchAll( \PDO::FETCH_ASSOC );
	}
}
