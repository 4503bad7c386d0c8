/* home.h: where things of hwnas lie that no user names: the data that ships, the caches. */
#ifndef HWNAS_BASE_HOME_H
#define HWNAS_BASE_HOME_H

/* An installation may be moved as a whole: its folders are found from where the library, or the
 * program that holds it, lies. What is not there is looked for where it was configured to be. In
 * the build tree there are the source tree's data and the program that was built; an installed
 * library never looks there. Found once, thread-safe, borrowed. */
const char *hwnas_data_root(void);     /* the folder of search_spaces/, predictors/ and gpus/ */
const char *hwnas_program_file(void);  /* hwnas */
const char *hwnas_library_file(void);  /* libhwnas.so, which need not be there */
const char *hwnas_module_folder(void); /* of hwnas-cuda.so */

/* The Python that has PyTorch: $HWNAS_TORCH_PYTHON, else the system's. Borrowed. */
const char *hwnas_torch_python(void);

/* The library that holds this, or the program. NULL where the system cannot tell. Yours to free().
 */
char *hwnas_own_file(void);

/* A file or folder in the user's cache: $XDG_CACHE_HOME/hwnas/NAME, else ~/.cache/hwnas/NAME; it
 * need not exist. NULL: the user has no home. Yours to free(). */
char *hwnas_cache_path(const char *name);

/* Makes the folders above a file. What fails shows when the file is opened. */
void hwnas_make_folders(const char *file);

#endif
