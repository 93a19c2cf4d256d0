/**
 * Keeps the line ends of a file. A text area knows only LF; this module puts back CR LF and CR.
 */
import { diffArrays } from 'diff';
import { TIMEOUT } from './patch/hunks';

const LINE = /[^\r\n]*(?:\r\n|\r|\n|$)/g;

function split( text: string ): string[] {
	return ( text.match( LINE ) ?? [] ).filter( ( line ) => '' !== line );
}

function body( line: string ): string {
	return line.replace( /\r\n$|\r$|\n$/, '' );
}

/** Returns the text as a text area shows it. */
export function normalized( text: string ): string {
	return text.replace( /\r\n?/g, '\n' );
}

/** Returns the edited text with the line ends of the original: unchanged lines keep theirs, new ones get the most frequent. */
export function restored( original: string, edited: string ): string {
	if ( ! original.includes( '\r' ) ) {
		return edited;
	}
	if ( normalized( original ) === edited ) {
		return original;
	}
	const old = split( original );
	const fresh = split( edited );
	const counts = new Map< string, number >();
	old.forEach( ( line ) => {
		const end = line.slice( body( line ).length );
		if ( end ) {
			counts.set( end, ( counts.get( end ) ?? 0 ) + 1 );
		}
	} );
	const usual = [ ...counts ].sort( ( a, b ) => b[ 1 ] - a[ 1 ] )[ 0 ]?.[ 0 ] ?? '\n';
	const out = fresh.map( ( line ) => ( line.endsWith( '\n' ) ? body( line ) + usual : line ) );
	let [ oldAt, freshAt ] = [ 0, 0 ];
	// When the comparison takes too long, every line gets the most frequent line end.
	for ( const { count, added, removed } of diffArrays( old.map( normalized ), fresh, { timeout: TIMEOUT } ) ?? [] ) {
		for ( let i = 0; ! added && ! removed && i < count; i++ ) {
			out[ freshAt + i ] = old[ oldAt + i ]!;
		}
		oldAt += added ? 0 : count;
		freshAt += removed ? 0 : count;
	}
	return out.join( '' );
}
