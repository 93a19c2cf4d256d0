<?php

declare( strict_types=1 );

namespace Library;

/** What a version must be. README.md has the table. */
final class Constraint {

	/** @var array<int, array{0: string, 1: Version}> Operators and versions; all must hold. */
	private $rules = array();

	public static function parse( string $text ): self {
		$constraint = new self();
		$words      = preg_split( '/\s+/', trim( $text ), -1, PREG_SPLIT_NO_EMPTY );
		if ( array() === $words ) {
			throw new \InvalidArgumentException( 'an empty constraint' );
		}
		foreach ( $words as $word ) {
			preg_match( '/^(>=|<=|>|<|=|~|\^)?(.*)$/', $word, $found );
			$constraint->add( $found[1], Version::parse( $found[2] ) );
		}
		return $constraint;
	}

	public function allows( string $version ): bool {
		$version = Version::parse( $version );
		foreach ( $this->rules as list( $operator, $limit ) ) {
			if ( ! $this->holds( $version->compare( $limit ), $operator ) ) {
				return false;
			}
		}
		return true;
	}

	private function add( string $operator, Version $version ): void {
		switch ( $operator ) {
			case '~':
				$this->rules[] = array( '>=', $version );
				$this->rules[] = array( '<', $version->bumped( max( 0, $version->given() - 2 ) ) );
				break;
			case '^':
				$this->rules[] = array( '>=', $version );
				$this->rules[] = array( '<', $version->bumped( 0 ) );
				break;
			default:
				$this->rules[] = array( '' === $operator ? '=' : $operator, $version );
		}
	}

	private function holds( int $comparison, string $operator ): bool {
		switch ( $operator ) {
			case '>=':
				return $comparison >= 0;
			case '>':
				return $comparison > 0;
			case '<=':
				return $comparison <= 0;
			case '<':
				return $comparison < 0;
			default:
				return 0 === $comparison;
		}
	}
}
