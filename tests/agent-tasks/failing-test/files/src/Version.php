<?php

declare( strict_types=1 );

namespace Library;

/** A version of three numbers. */
final class Version {

	/** @var int[] */
	private $parts;

	/** How many parts were given. */
	private $given;

	/** @param int[] $parts */
	private function __construct( array $parts, int $given ) {
		$this->parts = $parts;
		$this->given = $given;
	}

	public static function parse( string $text ): self {
		if ( ! preg_match( '/^\d+(\.\d+){0,2}$/', $text ) ) {
			throw new \InvalidArgumentException( "\"$text\" is no version" );
		}
		$parts = array_map( 'intval', explode( '.', $text ) );
		return new self( array_pad( $parts, 3, 0 ), count( $parts ) );
	}

	public function part( int $index ): int {
		return $this->parts[ $index ];
	}

	public function given(): int {
		return $this->given;
	}

	/** The first version in which a part is one more. */
	public function bumped( int $index ): self {
		$parts           = array_slice( $this->parts, 0, $index + 1 );
		$parts[ $index ] = $parts[ $index ] + 1;
		return new self( array_pad( $parts, 3, 0 ), 3 );
	}

	/** Less than, equal to or greater than zero, as the versions compare. */
	public function compare( self $other ): int {
		return $this->parts <=> $other->parts;
	}
}
