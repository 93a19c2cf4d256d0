/** Makes LICENSES.txt: the packages whose code is in the bundles, each with its licence text. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Licences whose code may be part of a work under GPL-2.0-or-later. */
const compatible = new Set( [ 'GPL-2.0-or-later', 'MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', '0BSD' ] );

/** Packages without a licence in package.json: the licence, and a pattern that their LICENSE file must match. */
const stated = { '@php-wasm/util': [ 'GPL-2.0-or-later', /GNU GENERAL PUBLIC LICENSE|GPL/i ] };

/** What is inside of php-*.bin, beside PHP. */
const insideWasm = `The files php-jspi.bin and php-asyncify.bin hold PHP (PHP License 3.01) compiled by the project
WordPress Playground (GPL-2.0-or-later), with the libraries that PHP links: OpenSSL (Apache-2.0), libcurl (curl),
SQLite (public domain), zlib (zlib), libxml2 (MIT), libzip (BSD-3-Clause), Oniguruma (BSD-2-Clause), libpng
(libpng-2.0), libjpeg-turbo (IJG, BSD-3-Clause), libwebp and libaom (BSD), ICU is not included. Sources:
https://github.com/WordPress/wordpress-playground/tree/trunk/packages/php-wasm/compile
`;

function packageOf( input ) {
	const match = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec( input );
	return match?.[ 1 ];
}

/** The text; throws when the licence of a bundled package is unknown or does not fit. */
export function licenses( here, inputs, sqliteLicense ) {
	const names = [ ...new Set( [ ...inputs ].map( packageOf ).filter( Boolean ) ) ].sort();
	const parts = [ 'Packages in the files of this folder, and their licences.\nThe folder as a whole is under GPL-2.0-or-later.\n', insideWasm ];
	for ( const name of names ) {
		const directory = join( here, 'node_modules', name );
		const facts = JSON.parse( readFileSync( join( directory, 'package.json' ), 'utf8' ) );
		const file = readdirSync( directory ).find( ( one ) => /^licen[cs]e/i.test( one ) );
		const text = file ? readFileSync( join( directory, file ), 'utf8' ).trim() : '';
		let license = facts.license;
		if ( undefined === license && stated[ name ]?.[ 1 ].test( text ) ) {
			license = stated[ name ][ 0 ];
		}
		if ( ! compatible.has( license ) || '' === text ) {
			throw new Error( `${ name }: its licence (${ license ?? 'none' }) is not known to fit, or its text is missing` );
		}
		parts.push( `${ name } ${ facts.version }\nLicence: ${ license }\n\n${ text }\n` );
	}
	if ( existsSync( sqliteLicense ) ) {
		parts.push( `SQLite Database Integration (sqlite-database-integration.zip)\nLicence: GPL-2.0-or-later\n\n${ readFileSync( sqliteLicense, 'utf8' ).trim() }\n` );
	}
	return parts.join( `\n${ '='.repeat( 100 ) }\n\n` );
}
